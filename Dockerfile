# groupkeeper, to run `serve`: docker build -t groupkeeper . (docs/serve.md has how it is started)
FROM python:3.13-slim AS build
WORKDIR /build
COPY requirements/serve.txt requirements/serve.txt
RUN python -m venv /opt/groupkeeper \
 && /opt/groupkeeper/bin/pip install --no-cache-dir --require-hashes -r requirements/serve.txt
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src src
RUN /opt/groupkeeper/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
 && /opt/groupkeeper/bin/pip uninstall --yes setuptools pip

FROM python:3.13-slim
COPY --from=build /opt/groupkeeper /opt/groupkeeper
# The history, the journal and the contexts: mount a volume there, or a restart begins anew.
ENV PATH=/opt/groupkeeper/bin:$PATH XDG_STATE_HOME=/data XDG_CONFIG_HOME=/data/config
RUN mkdir /data && chown 65532:65532 /data
USER 65532:65532
VOLUME /data
EXPOSE 8080
HEALTHCHECK CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/healthz', timeout=3)"]
ENTRYPOINT ["groupkeeper"]
CMD ["serve", "--help"]
