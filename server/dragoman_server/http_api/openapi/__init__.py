"""The description of all APIs in OpenAPI 3.1."""
