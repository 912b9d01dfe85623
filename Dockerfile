# `everlog serve` in a container.  The folder with the program and its database is /data:
#
#   docker build -t everlog .
#   docker run -p 127.0.0.1:8765:8765 -e EVERLOG_TOKEN=… -v "$PWD:/data" everlog shop.dl --db shop.db
#
# See docs/howto/service.md.

FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
COPY . /src
RUN pip wheel --no-cache-dir --wheel-dir /wheels '/src[serve,sql]'

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels 'everlog[serve,sql]' && rm -rf /wheels
RUN useradd --system everlog && mkdir /data && chown everlog /data
USER everlog
WORKDIR /data
EXPOSE 8765
# a graceful stop: the current step is finished and answered
STOPSIGNAL SIGTERM
HEALTHCHECK CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8765/api/v1/health', timeout=3)"]
ENTRYPOINT ["everlog", "serve", "--host", "0.0.0.0"]
