"""The gRPC service around the engine: what a client sees and what an operator watches."""
