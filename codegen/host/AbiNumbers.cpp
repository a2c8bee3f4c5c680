//===- AbiNumbers.cpp - What the ABI calls types and roles ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/AbiNumbers.h"

#include "dialect/zrt/ZrtDialect.h"
#include "zero_rt/library.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace zero;

// Enumerations of the dialect become numbers of the tables as they are.
#define SAME(A, B)                                                             \
  static_assert(int64_t(A) == int64_t(B), "the dialect and the ABI agree")
SAME(zrt::Role::parameter, ZERO_RT_ROLE_PARAMETER);
SAME(zrt::Role::gradient, ZERO_RT_ROLE_GRADIENT);
SAME(zrt::Role::accumulator, ZERO_RT_ROLE_ACCUMULATOR);
SAME(zrt::Role::state, ZERO_RT_ROLE_STATE);
SAME(zrt::Role::staging, ZERO_RT_ROLE_STAGING);
SAME(zrt::Space::device, ZERO_RT_SPACE_DEVICE);
SAME(zrt::Space::host, ZERO_RT_SPACE_HOST);
SAME(zrt::Event::begin, ZERO_RT_EVENT_BEGIN);
SAME(zrt::Event::arrive, ZERO_RT_EVENT_ARRIVE);
SAME(zrt::Event::accumulate, ZERO_RT_EVENT_ACCUMULATE);
SAME(zrt::Event::apply, ZERO_RT_EVENT_APPLY);
SAME(zrt::Event::discard, ZERO_RT_EVENT_DISCARD);
SAME(zrt::Event::begin_last, ZERO_RT_EVENT_BEGIN_LAST);
SAME(zrt::Event::measure, ZERO_RT_EVENT_MEASURE);
SAME(zrt::Event::unshard, ZERO_RT_EVENT_UNSHARD);
SAME(zrt::Event::reshard, ZERO_RT_EVENT_RESHARD);
SAME(zrt::getMaxEnumValForEvent() + 1, ZERO_RT_EVENT_COUNT);
SAME(zrt::Stream::compute, ZERO_RT_STREAM_COMPUTE);
SAME(zrt::Stream::collective, ZERO_RT_STREAM_COLLECTIVE);
SAME(zrt::Stream::to_host, ZERO_RT_STREAM_TO_HOST);
SAME(zrt::Stream::host, ZERO_RT_STREAM_HOST);
SAME(zrt::Stream::to_device, ZERO_RT_STREAM_TO_DEVICE);
SAME(zrt::Stream::caller, ZERO_RT_STREAM_CALLER);
SAME(zrt::getMaxEnumValForStream() + 1, ZERO_RT_STREAM_COUNT);
SAME(Outcome::applied, ZERO_RT_APPLIED);
SAME(Outcome::skipped_nonfinite, ZERO_RT_SKIPPED_NONFINITE);
SAME(Outcome::refused_missing_gradient, ZERO_RT_REFUSED_MISSING_GRADIENT);
SAME(Outcome::refused_unequal_backwards, ZERO_RT_REFUSED_UNEQUAL_BACKWARDS);
SAME(Outcome::refused_nonfinite, ZERO_RT_REFUSED_NONFINITE);
SAME(Outcome::refused_no_tokens, ZERO_RT_REFUSED_NO_TOKENS);
SAME(Outcome::refused_input, ZERO_RT_REFUSED_INPUT);
#undef SAME

zero_rt_dtype zero::getDtype(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
#define ZERO_RT_DTYPE(NAME, TEXT, BYTES)                                       \
  if (name == TEXT)                                                            \
    return ZERO_RT_##NAME;
#include "zero_rt/dtypes.def"
  llvm::report_fatal_error(llvm::Twine("no type of the ABI: ") + name);
}

Type zero::getType(int64_t dtype, MLIRContext *context) {
#define ZERO_RT_DTYPE(NAME, TEXT, BYTES)                                       \
  if (dtype == ZERO_RT_##NAME)                                                 \
    return parseType(TEXT, context);
#include "zero_rt/dtypes.def"
  return nullptr;
}

StringRef zero::getDtypeName(int64_t dtype) {
#define ZERO_RT_DTYPE(NAME, TEXT, BYTES)                                       \
  if (dtype == ZERO_RT_##NAME)                                                 \
    return TEXT;
#include "zero_rt/dtypes.def"
  return "unknown";
}

int64_t zero::getDtypeBytes(int64_t dtype) {
#define ZERO_RT_DTYPE(NAME, TEXT, BYTES)                                       \
  if (dtype == ZERO_RT_##NAME)                                                 \
    return BYTES;
#include "zero_rt/dtypes.def"
  llvm_unreachable("a row of a table has a type of the ABI");
}
