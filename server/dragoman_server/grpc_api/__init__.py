"""The gRPC service: calls, messages, health."""
