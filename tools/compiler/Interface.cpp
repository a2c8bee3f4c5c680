//===- Interface.cpp - The functions of zero_compiler.h -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/compiler/include/zero_compiler.h"

#include "tools/compiler/CompileText.h"
#include "tools/compiler/Guard.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

using namespace zero;

struct zero_compiler_result {
  zero_compiler_status status = ZERO_COMPILER_OK;
  CompileOutput output;
  std::string errors = "[]";
};

static constexpr const char *kName = "zero_compiler";

/// Sizes of version 1.
static_assert(sizeof(zero_compiler_request) == 40);
static_assert(sizeof(zero_compiler_output) == 72);

/// Whether the fields of a struct that are not known here, behind |known|
/// bytes, are 0.
static bool isRestZero(const void *data, size_t size, size_t known) {
  const char *bytes = static_cast<const char *>(data);
  return std::all_of(bytes + known, bytes + size,
                     [](char byte) { return byte == 0; });
}

/// All that one call needs. Work that LLVM has stopped refers to it for ever.
struct Call {
  std::optional<std::string> step, parameters, recipe, options;
  CompileOutput output;
  Errors errors{kName};
};

static void setErrors(zero_compiler_result &result, const Errors &errors) {
  result.status = static_cast<zero_compiler_status>(errors.getCode());
  result.errors.clear();
  llvm::raw_string_ostream(result.errors)
      << llvm::json::Value(llvm::json::Array(errors.getList()));
}

static void fail(zero_compiler_result &result, ExitCode code,
                 const std::string &message) {
  Errors errors(kName);
  errors.keepSilently();
  errors.add(code, message);
  setErrors(result, errors);
}

static void compile(const zero_compiler_request &request,
                    zero_compiler_result &result) {
  auto call = std::make_unique<Call>();
  auto copy = [](std::optional<std::string> &to, const char *from) {
    if (from)
      to = from;
  };
  copy(call->step, request.step);
  copy(call->parameters, request.parameters);
  copy(call->recipe, request.recipe);
  copy(call->options, request.options);
  std::string message;
  GuardedEnd end = runGuarded(
      [&call = *call] {
        call.errors.keepSilently();
        CompileRequest texts{call.step, call.parameters, call.recipe,
                             call.options};
        (void)compileText(texts, call.output, call.errors);
      },
      message);
  if (end != GuardedEnd::done)
    fail(result,
         end == GuardedEnd::noMemory ? ExitCode::environment : ExitCode::failed,
         message);
  else if (!call->errors.empty())
    setErrors(result, call->errors);
  else
    result.output = std::move(call->output);
  if (end == GuardedEnd::fatal)
    call.release();
}

uint32_t zero_compiler_abi_version(void) { return ZERO_COMPILER_ABI_VERSION; }

const char *zero_compiler_version(void) { return ZERO_VERSION; }

zero_compiler_status zero_compiler_compile(const zero_compiler_request *request,
                                           zero_compiler_result **out_result) {
  if (!out_result)
    return ZERO_COMPILER_USAGE;
  *out_result = nullptr;
  try {
    auto result = std::make_unique<zero_compiler_result>();
    if (!request)
      fail(*result, ExitCode::usage, "request is null");
    else if (request->struct_size < sizeof(*request))
      fail(*result, ExitCode::usage,
           "request has struct_size " + std::to_string(request->struct_size) +
               ", expected at least " + std::to_string(sizeof(*request)));
    else if (!isRestZero(request, request->struct_size, sizeof(*request)))
      fail(*result, ExitCode::usage,
           "request has a field that this library does not know; set it to 0, "
           "or use a later libzero_compiler");
    else
      compile(*request, *result);
    *out_result = result.release();
    return (*out_result)->status;
  } catch (...) {
    return ZERO_COMPILER_ENVIRONMENT;
  }
}

zero_compiler_status
zero_compiler_result_get(const zero_compiler_result *result,
                         zero_compiler_output *out_output) {
  if (!result || !out_output || out_output->struct_size < sizeof(*out_output) ||
      !isRestZero(out_output, out_output->struct_size, sizeof(*out_output)))
    return ZERO_COMPILER_USAGE;
  const CompileOutput &output = result->output;
  uint32_t size = out_output->struct_size;
  *out_output = {size,
                 result->status,
                 output.name.c_str(),
                 output.step.c_str(),
                 output.header.c_str(),
                 output.plan.c_str(),
                 result->errors.c_str(),
                 output.library.data(),
                 output.library.size(),
                 output.isCached,
                 /*reserved=*/0};
  return ZERO_COMPILER_OK;
}

void zero_compiler_result_destroy(zero_compiler_result *result) {
  delete result;
}
