"""Names of the engines that are compared, as the figures and the page of results have them."""

SERVED = "dragoman over gRPC"
IN_PROCESS = "dragoman in process"
CTRANSLATE2 = "ctranslate2"
TRANSFORMERS = "transformers"
OPTIMUM = "optimum-onnx"
BERGAMOT = "bergamot"

# Those of the benchmark of shortlists; all in process.
DRAGOMAN = "dragoman"
SHORTLISTED = "dragoman, shortlist"
MAPPED = "ctranslate2, map"
