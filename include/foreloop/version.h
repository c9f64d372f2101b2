/* Version of the header that a host compiles against; foreloop_version() tells the version that it linked. */
#ifndef FORELOOP_VERSION_H
#define FORELOOP_VERSION_H

#define FORELOOP_VERSION_MAJOR  0
#define FORELOOP_VERSION_MINOR  1
#define FORELOOP_VERSION_PATCH  0
#define FORELOOP_VERSION_STRING "0.1.0"

#endif
