/*===- group_memory.c - Process groups without memory ---------------------===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* Creates process groups, and lets the first allocation fail, then the second
|* one, and so on until a group is made. A transport over which no group is made
|* stays with the caller: a second destroy would be a double free.
|*
\*===----------------------------------------------------------------------===*/

#include "zero_rt/tcp.h"
#include "zero_rt/transport.h"

#include <stdio.h>
#include <stdlib.h>

/* The runtime has an operator new of its own, which calls this. */
extern void *__libc_malloc(size_t bytes);
static int countdown;
void *malloc(size_t bytes) {
  return countdown > 0 && --countdown == 0 ? NULL : __libc_malloc(bytes);
}

static int destroyed;
static zero_rt_status begin(void *context, int32_t rank, int32_t channel,
                            const void *data, int64_t bytes, void **request) {
  (void)context, (void)rank, (void)channel, (void)data, (void)bytes;
  *request = NULL;
  return ZERO_RT_INTERNAL;
}
static zero_rt_status receive(void *context, int32_t rank, int32_t channel,
                              void *data, int64_t bytes, void **request) {
  return begin(context, rank, channel, data, bytes, request);
}
static zero_rt_status test(void *context, void *request, int32_t *done) {
  (void)context, (void)request;
  *done = 0;
  return ZERO_RT_INTERNAL;
}
static void cancel(void *context, void *request) {
  (void)context, (void)request;
}
static const char *error(void *context) {
  (void)context;
  return "it carries nothing";
}
static void destroy(void *context) {
  (void)context;
  ++destroyed;
}

static zero_rt_status create_over_transport(zero_rt_group **group) {
  const zero_rt_transport transport = {.struct_size = sizeof(transport),
                                       .ranks = 2,
                                       .send = begin,
                                       .receive = receive,
                                       .test = test,
                                       .cancel = cancel,
                                       .error = error,
                                       .destroy = destroy};
  return zero_rt_transport_group_create(&transport, group);
}

static zero_rt_status create_over_tcp(zero_rt_group **group) {
  const zero_rt_tcp_options options = {.struct_size = sizeof(options),
                                       .ranks = 1,
                                       .port = 29501,
                                       .host = "127.0.0.1"};
  return zero_rt_tcp_group_create(&options, group);
}

/* Creates a group with each allocation failing in turn, and destroys it. */
static int run(const char *name, zero_rt_status (*create)(zero_rt_group **)) {
  destroyed = 0;
  for (int failing = 1; failing < 1000; ++failing) {
    zero_rt_group *group = NULL;
    countdown = failing;
    zero_rt_status status = create(&group);
    countdown = 0;
    if (status == ZERO_RT_OK && zero_rt_group_destroy(group) == ZERO_RT_OK) {
      printf("%s: %d allocations failed\n", name, failing - 1);
      return 0;
    }
    if (status != ZERO_RT_OUT_OF_MEMORY || group || destroyed) {
      printf("%s: allocation %d: %s: %s, destroyed %d times\n", name, failing,
             zero_rt_status_name(status), zero_rt_message(), destroyed);
      return 1;
    }
  }
  return 1;
}

int main(void) {
  return run("transport", create_over_transport) || destroyed != 1 ||
         run("tcp", create_over_tcp);
}
