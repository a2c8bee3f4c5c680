//===- zero_compiler.h - The compiler as a library --------------*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libzero_compiler compiles a step in the process of a client, as zero-compile
// does:
//
//   zero_compiler_request request = {.struct_size = sizeof(request)};
//   request.parameters = "[{\"name\": \"w\", \"shape\": [64, 48]}]";
//   request.recipe = "adamw,max_norm=1,wd=0.1";
//   request.options = "{\"mesh\": \"dp=4\", \"stage\": 2}";
//   zero_compiler_result *result;
//   zero_compiler_status status = zero_compiler_compile(&request, &result);
//   zero_compiler_output output = {.struct_size = sizeof(output)};
//   zero_compiler_result_get(result, &output);
//   ... output.library, or output.errors ...
//   zero_compiler_result_destroy(result);
//
// The library has LLVM and MLIR within it, and exports the functions below
// only. It starts no program but ptxas, for GPUs, if there is one. It needs a
// folder for temporary files, which it removes.
//
// All functions may be called by any thread. Compiles of several threads run
// one after the other. No function throws an exception, ends the process, or
// writes to stdout or stderr. docs/compiler-library.md has the exceptions.
//
// All texts end with a byte of 0 and are UTF-8.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_COMPILER_H
#define ZERO_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The exit code that zero-compile would have. The numbers are never reused.
typedef int32_t zero_compiler_status;

enum {
  ZERO_COMPILER_OK = 0,
  /// The step or the list of parameters is wrong, or a check failed.
  ZERO_COMPILER_FAILED = 1,
  /// The request, its recipe or its options are wrong.
  ZERO_COMPILER_USAGE = 2,
  /// A file cannot be written, or there is no memory.
  ZERO_COMPILER_ENVIRONMENT = 3
};

/// The version of this interface. It grows when a struct or a function is
/// added. A program checks that the library is not older than its header.
#define ZERO_COMPILER_ABI_VERSION 1

/// ZERO_COMPILER_ABI_VERSION of the library.
uint32_t zero_compiler_abi_version(void);

/// The version of the compiler, such as "0.2.0". Ownership: the text is static.
const char *zero_compiler_version(void);

/// What to compile: either |step|, or |parameters| and |recipe|. A struct of
/// another version is accepted: fields that this library does not know must be
/// 0.
typedef struct zero_compiler_request {
  uint32_t struct_size;
  uint32_t reserved; // 0
  /// A logical step, as MLIR. Null: |parameters| and |recipe| describe it.
  const char *step;
  /// The list of parameters, as JSON. `zero-translate --help` describes it.
  const char *parameters;
  /// What `--recipe` takes.
  const char *recipe;
  /// An object of JSON with the flags of zero-compile, or null:
  /// {"mesh": "dp=4", "stage": 2}. Keys: mesh, stage, shard-over,
  /// keep-after-forward, unit-order, prefetch-units, reduce, offload,
  /// bucket-bytes, name, step, cpu, target, max-bytes and cache, which
  /// `zero-compile --help` describes. A value is a string or a whole number.
  /// Errors call the option "stage" --stage.
  const char *options;
} zero_compiler_request;

/// What was compiled. A text is empty if there is none; none is null.
typedef struct zero_compiler_output {
  uint32_t struct_size;
  zero_compiler_status status;
  /// NAME in libNAME.so and NAME.h.
  const char *name;
  /// The logical step as MLIR; with a recipe, what zero-translate writes.
  const char *step;
  /// The content of NAME.h and of NAME.plan.json.
  const char *header;
  const char *plan;
  /// A list of errors as JSON, with the schema of `zero-compile --json`. "[]"
  /// if |status| is 0. The files in it are "<step>", "<parameters>", and "<the
  /// step that was written>" with a recipe.
  const char *errors;
  /// The content of libNAME.so, which zero_rt_open accepts as a file.
  const void *library;
  uint64_t library_size;
  /// 1: the step was found in the folder of the option "cache".
  int32_t is_cached;
  int32_t reserved;
} zero_compiler_output;

typedef struct zero_compiler_result zero_compiler_result;

/// Compiles what |request| says, and proves it. Blocks until that is done.
/// Errors: the status, which zero_compiler_result_get repeats with messages.
/// Without an |out_result| to set the status is usage. Ownership: the caller
/// destroys |*out_result|, which is set on an error, too; it is null if there
/// is no memory for it. The texts of |request| are not used after the call.
zero_compiler_status zero_compiler_compile(const zero_compiler_request *request,
                                           zero_compiler_result **out_result);

/// Describes |result|. Set out_output->struct_size first. Errors: usage (an
/// argument is null, or the struct has fields that this library does not know
/// and that are not 0). Ownership: what |*out_output| points to belongs to
/// |result|.
zero_compiler_status
zero_compiler_result_get(const zero_compiler_result *result,
                         zero_compiler_output *out_output);

/// Frees |result|, which may be null. A result is destroyed once.
void zero_compiler_result_destroy(zero_compiler_result *result);

#ifdef __cplusplus
}
#endif

#endif // ZERO_COMPILER_H
