# Two images of one file:
#
#   docker build --target cpu --tag dragoman:cpu .
#   docker build --target gpu --tag dragoman:gpu .
#
# With labels that say what it was made of and when:
#
#   --build-arg REVISION="$(git rev-parse HEAD)" --build-arg CREATED="$(date --utc +%Y-%m-%dT%H:%M:%SZ)"
#
# docs/operations.md says how to run them. `make test-image` builds and runs the first without Docker.

ARG CPU_BASE=debian:trixie-slim
# onnxruntime-gpu from 1.28 on is built for CUDA 13 and cuDNN 9.
ARG GPU_BASE=nvidia/cuda:13.0.2-cudnn-runtime-ubuntu24.04


# The wheel, made once for both. Python is the base system's own in all stages, so that an environment
# that is made in one runs in another.
FROM ${CPU_BASE} AS wheel
# Versions of the system's packages are not pinned: Debian and Ubuntu keep only the newest of each,
# and the newest is the one with the security fixes.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY constraints.txt ./
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --constraint constraints.txt hatchling
COPY pyproject.toml README.md LICENSE ./
COPY protos protos
COPY cli cli
COPY client client
COPY documents documents
COPY server server
# Training and export are not copied, so their packages are not in this wheel; commands that would be
# looked for in them must not be announced either.
RUN sed --in-place --regexp-extended '/= "dragoman_(training|export)\./d' pyproject.toml \
    && /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel .


FROM wheel AS cpu-packages
# Without pip in the end: nothing is installed into a running container.
RUN python3 -m venv /opt/dragoman \
    && /opt/dragoman/bin/pip install --no-cache-dir --constraint constraints.txt \
        "$(echo /wheel/*.whl)[server]" \
    && /opt/dragoman/bin/pip uninstall --yes pip
# With its card, which its licence wants to go along. Readable for all, also where whoever checked it
# out keeps files to themselves.
COPY models/en-pt.md /models/
COPY models/en-pt /models/en-pt
RUN chmod --recursive a+rX /models


FROM ${GPU_BASE} AS gpu-packages
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY constraints.txt ./
COPY --from=wheel /wheel /wheel
RUN python3 -m venv /opt/dragoman \
    && /opt/dragoman/bin/pip install --no-cache-dir --constraint constraints.txt \
        "$(echo /wheel/*.whl)[server-gpu]" \
    && /opt/dragoman/bin/pip uninstall --yes pip


FROM ${GPU_BASE} AS gpu
# tini is PID 1: it passes signals on, also those that come before Python has its handlers, and takes
# care of orphans.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 tini \
    && rm -rf /var/lib/apt/lists/* \
    && mkdir /models \
    && install --directory --owner=10001 --group=10001 --mode=0700 /var/cache/dragoman
COPY --from=gpu-packages /opt/dragoman /opt/dragoman
# Nothing has to be written at run time, so that the root can be read-only; where something writable is mounted at
# /var/cache, workers keep one copy of the weights there instead of one each. A server that is reachable wants
# TLS and keys, or to be told DRAGOMAN_ALLOW_OPEN=true by whoever protects it otherwise.
# onnxruntime from 1.29 on sends usage data to its makers unless told not to.
# No bundle is inside: the default model is int8, and CUDA needs float16. Mount one, and name it in
# DRAGOMAN_BUNDLES.
ENV PATH=/opt/dragoman/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    ORT_DISABLE_TELEMETRY=1 \
    DRAGOMAN_DEVICE=cuda \
    DRAGOMAN_CACHE_DIR=/var/cache/dragoman \
    DRAGOMAN_LISTEN=0.0.0.0:50051 \
    DRAGOMAN_HTTP=0.0.0.0:8080 \
    DRAGOMAN_METRICS=0.0.0.0:9464 \
    DRAGOMAN_LOG_FORMAT=json
# By number, so that Kubernetes can see that it is not root.
USER 10001:10001
WORKDIR /models
EXPOSE 50051 8080 9464
HEALTHCHECK --interval=30s --timeout=10s --start-period=5m --retries=3 CMD ["dragoman", "health"]
ENTRYPOINT ["/usr/bin/tini", "--", "dragoman"]
CMD ["serve"]
ARG REVISION=unknown
ARG CREATED=""
ARG GPU_BASE
LABEL org.opencontainers.image.title="Dragoman" \
      org.opencontainers.image.description="Translation over gRPC and HTTP on GPUs" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="https://github.com/dragoman/dragoman" \
      org.opencontainers.image.documentation="https://github.com/dragoman/dragoman/blob/main/docs/operations.md" \
      org.opencontainers.image.base.name="${GPU_BASE}" \
      org.opencontainers.image.licenses="Apache-2.0"


# The last stage is what is built where no target is named.
FROM ${CPU_BASE} AS cpu
# tini as above.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 tini \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --owner=10001 --group=10001 --mode=0700 /var/cache/dragoman
COPY --from=cpu-packages /opt/dragoman /opt/dragoman
COPY --from=cpu-packages /models /models
ENV PATH=/opt/dragoman/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    ORT_DISABLE_TELEMETRY=1 \
    DRAGOMAN_BUNDLES=/models/en-pt \
    DRAGOMAN_CACHE_DIR=/var/cache/dragoman \
    DRAGOMAN_LISTEN=0.0.0.0:50051 \
    DRAGOMAN_HTTP=0.0.0.0:8080 \
    DRAGOMAN_METRICS=0.0.0.0:9464 \
    DRAGOMAN_LOG_FORMAT=json
USER 10001:10001
WORKDIR /models
EXPOSE 50051 8080 9464
HEALTHCHECK --interval=30s --timeout=10s --start-period=5m --retries=3 CMD ["dragoman", "health"]
ENTRYPOINT ["/usr/bin/tini", "--", "dragoman"]
CMD ["serve"]
ARG REVISION=unknown
ARG CREATED=""
ARG CPU_BASE
LABEL org.opencontainers.image.title="Dragoman" \
      org.opencontainers.image.description="Translation over gRPC, with an English to Portuguese model" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="https://github.com/dragoman/dragoman" \
      org.opencontainers.image.documentation="https://github.com/dragoman/dragoman/blob/main/docs/operations.md" \
      org.opencontainers.image.base.name="${CPU_BASE}" \
      org.opencontainers.image.licenses="Apache-2.0 AND CC-BY-SA-4.0"
