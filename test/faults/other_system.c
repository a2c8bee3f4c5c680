// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Preloaded into a job, it makes another system of this one: a kernel without
// IPv6 (NO_IPV6), or a name server that does not answer (NO_NAMES).

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int socket(int family, int type, int protocol) {
  int (*real)(int, int, int) =
      (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
  if (family == AF_INET6 && getenv("NO_IPV6")) {
    errno = EAFNOSUPPORT;
    return -1;
  }
  return real(family, type, protocol);
}

int getaddrinfo(const char *host, const char *service,
                const struct addrinfo *hints, struct addrinfo **out) {
  typedef int Function(const char *, const char *, const struct addrinfo *,
                       struct addrinfo **);
  Function *real = (Function *)dlsym(RTLD_NEXT, "getaddrinfo");
  if (getenv("NO_NAMES") && !(hints->ai_flags & AI_NUMERICHOST))
    sleep(60);
  return real(host, service, hints, out);
}
