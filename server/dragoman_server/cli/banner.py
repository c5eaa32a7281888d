"""What a server says of itself when it is ready."""

from dragoman_server.cli.describe import human_bytes, languages_of
from dragoman_server.service.server import Server


def banner(server: Server) -> str:
    """Return what a server is, in lines for people."""
    lines = ["Dragoman is ready."]
    for model in server.models:
        manifest, engine = model.bundle.manifest, model.dispatcher.engine
        resolved = engine.resolved
        size = sum(file.bytes for file in manifest.files.values())
        lines.append(
            f"  {manifest.name} {manifest.version}: {languages_of(manifest)}, "
            f"{manifest.precision} on {engine.settings.device}, "
            f"{resolved.lanes} × {resolved.rows_per_lane} rows of {resolved.threads} thread(s), "
            f"{human_bytes(size)} of files, {human_bytes(engine.buffer_bytes)} for the rows, "
            f"{human_bytes(engine.resident_bytes)} resident now"
        )
    security = []
    if server.settings.tls_certificate:
        security.append("TLS")
    if server.settings.keys:
        security.append("keys")
    secured = " and ".join(security) or "no TLS, no keys"
    lines += [f"  {each.name:7}  {each.address}  {secured}" for each in server.listeners]
    scheme = "https" if server.settings.tls_certificate else "http"
    pages = [each.address for each in server.listeners if each.name == "HTTP"]
    lines += [f"  page     {scheme}://{address}/" for address in pages]
    if server.metrics_address:
        lines.append(f"  metrics  http://{server.metrics_address}/metrics")
    return "\n".join(lines)
