//===- meet_call.cpp - Ranks meet before work of the caller ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/protocol.h"
#include "core/status.h"
#include "core/step.h"

#include <cstring>
#include <vector>

using namespace zero_rt;

/// A tag that travels has room for a little more.
static constexpr size_t mostCharacters = 127;

zero_rt_status calls::meet(Step *step, const char *work) {
  if (!work)
    return fail(ZERO_RT_INVALID_ARGUMENT, "work is null");
  size_t length = strnlen(work, mostCharacters + 1);
  if (length == 0 || length > mostCharacters)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "meet: work has %s characters, expected 1 to %zu",
                length ? "more than 127" : "0", mostCharacters);
  Runtime &runtime = *step->runtime;
  Tag tag = {"meet", work, 0, ZERO_RT_F64, ZERO_RT_F64, step->id};
  char mine = 0;
  std::vector<char> all(size_t(runtime.ranks));
  zero_rt_status status =
      runtime.communicator->exchange(tag, &mine, all.data(), 1);
  if (status)
    poisonStep(*step, "meet", status);
  return status;
}
