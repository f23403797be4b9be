# Builds the packages of Debian where there is no Debian. The context is this tree, a clone or an unpacked release:
#   docker build -f scripts/containers/packages.Dockerfile --output build/deb .
ARG BASE=debian:bookworm-slim
FROM $BASE AS build
WORKDIR /source
COPY . .
RUN apt-get update && scripts/install-packages build && \
	apt-get install -y --no-install-recommends build-essential debhelper python3
RUN rm -rf .git build && DEB_BUILD=binary DEB_BUILD_OPTIONS=noautodbgsym make deb

FROM scratch
COPY --from=build /source/build/deb/*.deb /
