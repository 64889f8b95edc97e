# docker build -t cwnd .; docs/install.md says how to run it.
FROM rust:1.95-bookworm AS wheel
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv pkg-config libelf-dev zlib1g-dev
COPY . /cwnd
WORKDIR /cwnd
RUN make man && PATH="$PATH:.venv/bin" maturin build --release --out /dist

FROM debian:bookworm-slim
RUN --mount=from=wheel,source=/dist,target=/dist apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-venv ca-certificates iproute2 \
    && python3 -m venv /venv && /venv/bin/pip install --no-cache-dir "$(echo /dist/*.whl)[plots]" \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /work
ENTRYPOINT ["/venv/bin/cwnd"]
