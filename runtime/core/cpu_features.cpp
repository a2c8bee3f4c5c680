//===- cpu_features.cpp - What this machine can execute -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/cpu_features.h"

#include "core/status.h"

#include <string_view>

using namespace zero_rt;

static bool hasFeature(std::string_view feature) {
#if defined(__x86_64__)
  // The builtin takes literals only.
#define ZERO_RT_FEATURE(NAME)                                                  \
  if (feature == NAME)                                                         \
    return __builtin_cpu_supports(NAME) != 0;
  ZERO_RT_FEATURE("sse")
  ZERO_RT_FEATURE("sse2")
  ZERO_RT_FEATURE("sse3")
  ZERO_RT_FEATURE("ssse3")
  ZERO_RT_FEATURE("sse4.1")
  ZERO_RT_FEATURE("sse4.2")
  ZERO_RT_FEATURE("popcnt")
  ZERO_RT_FEATURE("avx")
  ZERO_RT_FEATURE("avx2")
  ZERO_RT_FEATURE("fma")
  ZERO_RT_FEATURE("f16c")
  ZERO_RT_FEATURE("bmi")
  ZERO_RT_FEATURE("bmi2")
  ZERO_RT_FEATURE("avx512f")
  ZERO_RT_FEATURE("avx512bw")
  ZERO_RT_FEATURE("avx512vl")
  ZERO_RT_FEATURE("avx512dq")
  ZERO_RT_FEATURE("avx512cd")
#undef ZERO_RT_FEATURE
#endif
  (void)feature;
  return false;
}

zero_rt_status zero_rt::checkCpuFeatures(const char *features,
                                         const char *library) {
  std::string_view rest = features ? features : "";
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    std::string_view feature = rest.substr(0, comma);
    rest = comma == rest.npos ? "" : rest.substr(comma + 1);
    if (!feature.empty() && !hasFeature(feature))
      return fail(ZERO_RT_UNSUPPORTED,
                  "library '%s' needs the cpu feature '%.*s', which this "
                  "machine or this runtime lacks; recompile without it",
                  library, int(feature.size()), feature.data());
  }
  return ZERO_RT_OK;
}
