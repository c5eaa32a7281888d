"""gRPC's handlers of the calls of ``dragoman.v1.TranslationService``."""

from typing import Any

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.grpc_api.calls import GrpcCalls
from dragoman_server.service.calls import Calls
from dragoman_server.service.handlers import Handlers

_DESCRIPTOR = pb.DESCRIPTOR.services_by_name["TranslationService"]
SERVICE: str = _DESCRIPTOR.full_name
RPCS: tuple[str, ...] = tuple(method.name for method in _DESCRIPTOR.methods)


def grpc_handlers(handlers: Handlers, calls: Calls) -> dict[str, Any]:
    """Return the handlers of all calls, by name."""
    grpc, check = GrpcCalls(calls), handlers.check_admission
    glossaries = handlers.glossaries
    return {
        "Translate": grpc.unary("Translate", pb.TranslateRequest, handlers.translate, check),
        "TranslateStream": grpc.server_stream(
            "TranslateStream", pb.TranslateStreamRequest, handlers.translate_stream, check
        ),
        "TranslateBulk": grpc.both_streams(
            "TranslateBulk", pb.TranslateBulkRequest, handlers.translate_bulk
        ),
        "Score": grpc.unary("Score", pb.ScoreRequest, handlers.score, check),
        "Detect": grpc.unary("Detect", pb.DetectRequest, handlers.detect),
        "ListModels": grpc.unary("ListModels", pb.ListModelsRequest, handlers.list_models),
        "GetModel": grpc.unary("GetModel", pb.GetModelRequest, handlers.get_model),
        "CreateGlossary": grpc.unary("CreateGlossary", pb.CreateGlossaryRequest, glossaries.create),
        "ListGlossaries": grpc.unary(
            "ListGlossaries", pb.ListGlossariesRequest, glossaries.list_all
        ),
        "GetGlossary": grpc.unary("GetGlossary", pb.GetGlossaryRequest, glossaries.get),
        "DeleteGlossary": grpc.unary("DeleteGlossary", pb.DeleteGlossaryRequest, glossaries.delete),
    }
