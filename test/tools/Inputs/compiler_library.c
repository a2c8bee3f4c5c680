/*===- compiler_library.c - A client of libzero_compiler ------------------===*\
|*
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|* usage: compiler_library FIELD=TEXT...
|*
|* FIELD is one of the request's; with FIELD@=FILE, TEXT is the content of a
|* file. out=FOLDER writes what was compiled. threads=N compiles in N threads at
|* once, and wants equal results. megabytes=N limits the memory to N MiB more
|* than there is. library=PATH takes the functions of this library, which is
|* opened twice. --abi makes the calls that are wrong in C.
|*
\*===----------------------------------------------------------------------===*/

#include "zero_compiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static uint32_t (*abi_version)(void) = zero_compiler_abi_version;
static zero_compiler_status (*compile)(const zero_compiler_request *,
                                       zero_compiler_result **) =
    zero_compiler_compile;
static zero_compiler_status (*get)(const zero_compiler_result *,
                                   zero_compiler_output *) =
    zero_compiler_result_get;
static void (*destroy)(zero_compiler_result *) = zero_compiler_result_destroy;

static zero_compiler_request request = {.struct_size = sizeof(request)};

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file)
    exit(9);
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file);
  rewind(file);
  char *text = calloc(1, size + 1);
  if (fread(text, 1, size, file) != size)
    exit(9);
  fclose(file);
  return text;
}

static void write_file(const char *folder, const char *name, const void *data,
                       size_t size) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file))
    exit(9);
}

static void *compile_in_thread(void *result) {
  compile(&request, (zero_compiler_result **)result);
  return NULL;
}

/* Whether two results are equal. */
static int is_same(zero_compiler_result *a, zero_compiler_result *b) {
  zero_compiler_output x = {.struct_size = sizeof(x)}, y = x;
  get(a, &x);
  get(b, &y);
  return x.status == y.status && !strcmp(x.errors, y.errors) &&
         !strcmp(x.plan, y.plan) && x.library_size == y.library_size &&
         !memcmp(x.library, y.library, x.library_size);
}

static void print(const char *what, zero_compiler_status status,
                  zero_compiler_result *result) {
  zero_compiler_output output = {.struct_size = sizeof(output)};
  printf("%s: %d", what, status);
  if (get(result, &output) == ZERO_COMPILER_OK)
    printf(" %s", output.errors);
  printf("\n");
  destroy(result);
}

static void call_wrongly(void) {
  zero_compiler_result *result = (zero_compiler_result *)1;
  print("null request", compile(NULL, &result), result);
  printf("null result: %d\n", compile(&request, NULL));
  zero_compiler_request small = {.struct_size = 8};
  print("small request", compile(&small, &result), result);
  struct {
    zero_compiler_request known;
    uint64_t later;
  } large = {{.struct_size = sizeof(large), .step = "x"}, 1};
  print("unknown field", compile(&large.known, &result), result);
  large.later = 0;
  print("unknown field that is 0", compile(&large.known, &result), result);
  compile(&request, &result);
  zero_compiler_output output = {.struct_size = 4};
  printf("small output: %d\n", get(result, &output));
  printf("null output: %d\n", get(result, NULL));
  printf("null to get: %d\n", get(NULL, &output));
  destroy(result);
  destroy(NULL);
}

static void load(const char *path) {
  void *first = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *again = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!first || first != again || dlclose(again)) {
    puts(dlerror());
    exit(9);
  }
  *(void **)&abi_version = dlsym(first, "zero_compiler_abi_version");
  *(void **)&compile = dlsym(first, "zero_compiler_compile");
  *(void **)&get = dlsym(first, "zero_compiler_result_get");
  *(void **)&destroy = dlsym(first, "zero_compiler_result_destroy");
}

static void limit_memory(long megabytes) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld", &pages) != 1 || fclose(file))
    exit(9);
  rlim_t bytes = (rlim_t)pages * 4096 + ((rlim_t)megabytes << 20);
  struct rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
}

int main(int argc, char **argv) {
  const char *out = NULL;
  int threads = 1;
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "--abi")) {
      call_wrongly();
      return 0;
    }
    char *value = strchr(argv[i], '=');
    if (!value)
      return 9;
    int is_file = value[-1] == '@';
    value[-is_file] = '\0';
    ++value;
    const char *text = is_file ? read_file(value) : value;
    if (!strcmp(argv[i], "step"))
      request.step = text;
    else if (!strcmp(argv[i], "parameters"))
      request.parameters = text;
    else if (!strcmp(argv[i], "recipe"))
      request.recipe = text;
    else if (!strcmp(argv[i], "options"))
      request.options = text;
    else if (!strcmp(argv[i], "out"))
      out = text;
    else if (!strcmp(argv[i], "threads"))
      threads = atoi(text);
    else if (!strcmp(argv[i], "megabytes"))
      limit_memory(atol(text));
    else if (!strcmp(argv[i], "library"))
      load(text);
    else
      return 9;
  }
  if (abi_version() != ZERO_COMPILER_ABI_VERSION)
    return 9;
  struct sigaction handlers[32];
  for (int i = 1; i < 32; ++i)
    sigaction(i, NULL, &handlers[i]);
  zero_compiler_result *result, *others[16];
  pthread_t ids[16];
  for (int i = 1; i < threads; ++i)
    pthread_create(&ids[i], NULL, compile_in_thread, &others[i]);
  zero_compiler_status status = compile(&request, &result);
  for (int i = 1; i < threads; ++i) {
    pthread_join(ids[i], NULL);
    if (!is_same(result, others[i]))
      puts("another result in another thread");
    destroy(others[i]);
  }
  for (int i = 1; i < 32; ++i) {
    struct sigaction now;
    sigaction(i, NULL, &now);
    if (now.sa_handler != handlers[i].sa_handler)
      printf("another handler of signal %d\n", i);
  }
  zero_compiler_output output = {.struct_size = sizeof(output)};
  if (!result || get(result, &output) != ZERO_COMPILER_OK ||
      output.status != status)
    return 9;
  printf("%d '%s' %s%s\n", status, output.name, output.errors,
         output.is_cached ? " cached" : "");
  if (out && status == ZERO_COMPILER_OK) {
    write_file(out, "library.so", output.library, output.library_size);
    write_file(out, "step.mlir", output.step, strlen(output.step));
    write_file(out, "header.h", output.header, strlen(output.header));
    write_file(out, "plan.json", output.plan, strlen(output.plan));
  }
  destroy(result);
  return status;
}
