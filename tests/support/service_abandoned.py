"""A client that asks for a long stream and reads it until it is killed.

python service_abandoned.py ADDRESS TEXT
"""

import sys

import grpc

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub

if __name__ == "__main__":
    with grpc.insecure_channel(sys.argv[1]) as channel:
        options = pb.Options(min_tokens=255, max_tokens=256)
        request = pb.TranslateStreamRequest(text=sys.argv[2], options=options)
        for _ in TranslationServiceStub(channel).TranslateStream(request):
            pass
