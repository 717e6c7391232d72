# syntax=docker/dockerfile:1
# One image for every service and the simulator: the command says which. Without one it runs all services.

FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /src
# What the image has, without the components for development that rust-toolchain.toml asks for.
ENV RUSTUP_TOOLCHAIN=1.95.0
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --package cli \
    && install -D target/release/postrider /out/postrider

# The documentation for resellers, as scripts/docs builds it.
FROM python:3.11-slim-bookworm AS docs
WORKDIR /src
COPY docs/site/requirements.txt docs/site/
RUN pip install --no-cache-dir --require-hashes --only-binary :all: --requirement docs/site/requirements.txt
COPY . .
RUN sphinx-build --builder html --nitpicky --fail-on-warning --quiet --doctree-dir /tmp/doctrees docs/site /out/docs \
    && rm -f /out/docs/.buildinfo /out/docs/objects.inv \
    && python docs/site/check_links.py /out/docs

FROM debian:bookworm-slim
# The roots of public certificates, to call receivers over TLS.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --no-create-home --uid 10001 postrider
COPY --from=build /out/postrider /usr/local/bin/postrider
COPY --from=docs /out/docs /usr/share/postrider/docs
ENV POSTRIDER__INGEST__LISTEN=0.0.0.0:8080 \
    POSTRIDER__PORTAL__LISTEN=0.0.0.0:8081 \
    POSTRIDER__PORTAL__DOCS_DIRECTORY=/usr/share/postrider/docs \
    POSTRIDER__OPERATOR__LISTEN=0.0.0.0:8082 \
    POSTRIDER__ADMIN__LISTEN=0.0.0.0:9090
EXPOSE 8080 8081 8082 9090
USER 10001
# Alive, not ready: a service whose database is away waits for it and must not be restarted.
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s \
    CMD ["postrider", "healthcheck", "http://127.0.0.1:9090/healthz"]
ENTRYPOINT ["postrider"]
CMD ["up"]
