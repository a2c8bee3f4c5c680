//===- changed_parameters.cpp - Parameters that callers write to ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Until apply a parameter is its rounded master weights, and the update starts
// from the master weights. So a write to a view of the parameter is found by
// rounding the master weights again.
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/numeric.h"
#include "core/protocol.h"
#include "core/state_entries.h"
#include "core/status.h"
#include "core/units.h"

#include <algorithm>
#include <type_traits>
#include <vector>

using namespace zero_rt;

/// The number of elements that are compared at a time. The copy of their master
/// weights stays in a near cache.
static constexpr int64_t comparedElements = 1 << 14;

/// Converts |value|, with at most one rounding.
template <typename To, typename From>
static typename To::Storage roundTo(typename From::Storage value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (std::is_same_v<From, F64>)
    return To::fromDouble(value);
  else
    return To::store(From::load(value));
}

template <typename Type> static bool isNan(typename Type::Storage value) {
  auto number = Type::load(value);
  return number != number;
}

/// The bits of an element, as a number.
template <typename Storage> static auto toBits(Storage value) {
  if constexpr (sizeof(Storage) == 2)
    return bitCast<uint16_t>(value);
  else if constexpr (sizeof(Storage) == 4)
    return bitCast<uint32_t>(value);
  else
    return bitCast<uint64_t>(value);
}

/// The bits in which |value| and the rounded |master| differ.
template <typename Parameter, typename Master>
static auto differenceOf(typename Parameter::Storage value,
                         typename Master::Storage master) {
  return toBits(value) ^ toBits(roundTo<Parameter, Master>(master));
}

/// Whether |value| is not the rounded |master|. All nans are the same, because
/// the payload of a nan says nothing.
template <typename Parameter, typename Master>
static bool isChanged(typename Parameter::Storage value,
                      typename Master::Storage master) {
  return differenceOf<Parameter, Master>(value, master) != 0 &&
         !(isNan<Parameter>(value) && isNan<Master>(master));
}

namespace {
/// A part of a parameter, and a copy of its master weights.
struct ParameterBlock {
  Range range; // in bucket coordinates
  const void *values;
  int64_t dtype;
  void *masters;
  int64_t masterDtype;
};

struct Changes {
  int64_t elements = 0;
  Range hull = {0, 0}; // of the changed elements, in bucket coordinates
};
} // namespace

/// Gives the master weights of the changed elements of |block| their values.
static Changes takeChanges(const ParameterBlock &block) {
  return dispatch(block.dtype, [&](auto type) {
    return dispatch(block.masterDtype, [&](auto masterType) {
      using Parameter = decltype(type);
      using Master = decltype(masterType);
      auto *values =
          static_cast<const typename Parameter::Storage *>(block.values);
      auto *masters = static_cast<typename Master::Storage *>(block.masters);
      Changes changes;
      auto take = [&](int64_t i) {
        if (!isChanged<Parameter, Master>(values[i], masters[i]))
          return;
        masters[i] = roundTo<Master, Parameter>(values[i]);
        int64_t element = block.range.begin + i;
        if (changes.elements++ == 0)
          changes.hull.begin = element;
        changes.hull.end = element + 1;
      };
      // Most elements have not changed. A loop without branches finds that.
      constexpr int64_t chunk = 1024;
      for (int64_t begin = 0; begin < block.range.size(); begin += chunk) {
        int64_t end = std::min(block.range.size(), begin + chunk);
        decltype(toBits(*values)) difference = 0;
        for (int64_t i = begin; i < end; ++i)
          difference |= differenceOf<Parameter, Master>(values[i], masters[i]);
        for (int64_t i = begin; difference != 0 && i < end; ++i)
          take(i);
      }
      return changes;
    });
  });
}

/// Calls |body| for the elements of |parameter| of which this rank has master
/// weights, pads left out.
template <typename Body>
static zero_rt_status forEachBlock(Step &step, int64_t parameter, Body &&body) {
  const zero_rt_library &library = *step.library;
  const zero_rt_parameter_row &row = library.parameters[parameter];
  const zero_rt_bucket_row &bucket = library.buckets[row.bucket];
  if (bucket.master_buffer < 0)
    return ZERO_RT_OK;
  Range held = intersect({row.offset, row.offset + row.elements},
                         step.held(bucket.master_buffer));
  int64_t dtype = library.buffers[bucket.parameter_buffer].dtype;
  int64_t masterDtype = library.buffers[bucket.master_buffer].dtype;
  std::vector<char> masters;
  for (int64_t begin = held.begin; begin < held.end;
       begin += comparedElements) {
    Range range = {begin, std::min(held.end, begin + comparedElements)};
    const void *seen = nullptr;
    int64_t bytes = range.size() * elementSize(masterDtype);
    ZERO_RT_TRY(step.device().look(step.address(bucket.master_buffer, begin),
                                   bytes, &seen));
    masters.assign(static_cast<const char *>(seen),
                   static_cast<const char *>(seen) + bytes);
    ZERO_RT_TRY(step.device().look(step.address(bucket.parameter_buffer, begin),
                                   range.size() * elementSize(dtype), &seen));
    ZERO_RT_TRY(
        body(ParameterBlock{range, seen, dtype, masters.data(), masterDtype}));
  }
  return ZERO_RT_OK;
}

/// Adds the number of elements that the caller has changed to |elements|.
static zero_rt_status takeParameter(Step &step, int32_t parameter,
                                    int64_t &elements) {
  const zero_rt_parameter_row &row = step.library->parameters[parameter];
  const zero_rt_bucket_row &bucket = step.library->buckets[row.bucket];
  ZERO_RT_TRY(forEachBlock(
      step, parameter, [&](const ParameterBlock &block) -> zero_rt_status {
        Changes changes = takeChanges(block);
        if (changes.elements == 0)
          return ZERO_RT_OK;
        elements += changes.elements;
        const void *values = elementAt(static_cast<const void *>(block.masters),
                                       block.masterDtype,
                                       changes.hull.begin - block.range.begin);
        ZERO_RT_TRY(writeElements(step, bucket.master_buffer, changes.hull,
                                  block.masterDtype, values));
        return step.device().finish(); // |values| is read until then
      }));
  if (bucket.staging_buffer < 0)
    return ZERO_RT_OK;
  return derive(step, bucket.parameter_buffer, bucket.staging_buffer,
                {row.offset, row.offset + row.elements});
}

/// Checks the arguments of parameters_changed, and lists the parameters that
/// they name.
static zero_rt_status readParameters(const Step &step,
                                     const int32_t *parameters, int64_t count,
                                     std::vector<int32_t> &out) {
  const zero_rt_library &library = *step.library;
  if (count < 0 || (count > 0 && !parameters))
    return fail(ZERO_RT_INVALID_ARGUMENT,
                count < 0 ? "parameters_changed: count is %lld"
                          : "parameters_changed: a list of %lld is null",
                (long long)count);
  if (!parameters) {
    for (int32_t p = 0; p < library.num_parameters; ++p)
      if (int64_t bucket = library.parameters[p].bucket;
          bucket >= 0 && !isSharded(library, bucket))
        out.push_back(p);
    return ZERO_RT_OK;
  }
  std::vector<bool> isNamed(size_t(library.num_parameters));
  for (int64_t i = 0; i < count; ++i) {
    int32_t p = parameters[i];
    ZERO_RT_TRY(checkParameter(step, p));
    if (isNamed[size_t(p)])
      return fail(ZERO_RT_INVALID_ARGUMENT,
                  "parameters_changed: parameter %d ('%s') is listed twice", p,
                  step.parameterName(p));
    isNamed[size_t(p)] = true;
    if (!isSharded(library, library.parameters[p].bucket))
      out.push_back(p);
  }
  return ZERO_RT_OK;
}

zero_rt_status calls::parameters_changed(Step *step, const int32_t *parameters,
                                         int64_t count, zero_rt_stream *stream,
                                         int64_t *out_elements) {
  if (out_elements)
    *out_elements = 0; // also where the call fails
  std::vector<int32_t> named;
  ZERO_RT_TRY(readParameters(*step, parameters, count, named));
  ZERO_RT_TRY(requireNotMeasured(*step, "parameters_changed"));
  ZERO_RT_TRY(step->device().follow(stream));
  int64_t elements = 0;
  for (int32_t p : named)
    ZERO_RT_TRY(takeParameter(*step, p, elements));
  ZERO_RT_TRY(step->device().finish());
  if (out_elements)
    *out_elements = elements;
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::checkUnwritten(Step &step, const char *call) {
  if (!step.runtime->checkPreconditions || step.state != 0)
    return ZERO_RT_OK;
  ZERO_RT_TRY(step.device().follow(/*stream=*/nullptr));
  step.differs.resize(size_t(step.library->num_parameters));
  for (size_t p = 0; p < step.differs.size(); ++p) {
    if (step.library->parameters[p].bucket < 0)
      continue;
    int64_t changed = 0;
    ZERO_RT_TRY(forEachBlock(
        step, int64_t(p), [&](const ParameterBlock &block) -> zero_rt_status {
          changed += takeChanges(block).elements;
          return ZERO_RT_OK;
        }));
    bool hasBoth = p < step.written.size() && step.written[p].parameter &&
                   step.written[p].master;
    step.differs[p] = changed > 0 && (hasBoth || step.differs[p]);
    if (changed > 0 && !step.differs[p])
      return fail(ZERO_RT_PROTOCOL,
                  "%s: '%s' was written on rank %d since the last step, and "
                  "the next step would start from its old values; call "
                  "zero_rt_step_parameters_changed",
                  call, step.parameterName(int64_t(p)), step.runtime->rank);
  }
  return ZERO_RT_OK;
}
