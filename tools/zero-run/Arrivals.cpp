//===- Arrivals.cpp - In which order gradients arrive ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Arrivals.h"

#include "codegen/host/Tables.h"

#include <algorithm>
#include <set>

using namespace mlir;
using namespace zero;

zero_rt_tensor zero::makeTensor(Bytes &bytes, Type type, int64_t elements) {
  zero_rt_tensor tensor = {};
  tensor.struct_size = sizeof(tensor);
  tensor.dtype = getDtype(type);
  tensor.space = ZERO_RT_SPACE_DEVICE;
  tensor.elements = elements;
  tensor.data = bytes.data();
  return tensor;
}

std::vector<Arrival> zero::listArrivals(ArrayRef<ParameterInfo> parameters,
                                        const RankInputs &inputs,
                                        Arrivals arrivals,
                                        std::mt19937_64 &random) {
  // (backward pass, parameter) of each piece.
  std::vector<std::pair<int64_t, int32_t>> order;
  for (auto [k, gradients] : llvm::enumerate(inputs.backwards)) {
    size_t first = order.size();
    for (int32_t id = parameters.size() - 1; id >= 0; --id)
      if (gradients.count(parameters[id].name)) {
        int64_t uses = parameters[id].uses;
        if (uses == ZERO_RT_USES_ANY)
          uses = 1 + (k + id) % 3;
        order.insert(order.end(), uses, {k, id});
      }
    if (arrivals == Arrivals::shuffled)
      std::shuffle(order.begin() + first, order.end(), random);
  }
  if (arrivals == Arrivals::interleaved)
    std::shuffle(order.begin(), order.end(), random);

  std::vector<Arrival> list;
  std::set<std::pair<int64_t, int32_t>> begun;
  for (auto [k, id] : order) {
    const ParameterInfo &parameter = parameters[id];
    const auto &values = inputs.backwards[k].find(parameter.name)->second;
    Bytes bytes = pack(values, parameter.arrivalType);
    // In one order on all ranks: what they promise to deliver alike is alike.
    if (!begun.insert({k, id}).second)
      std::fill(bytes.begin(), bytes.end(), 0);
    list.push_back({k, id, std::move(bytes), {}});
    list.back().tensor =
        makeTensor(list.back().bytes, parameter.arrivalType, values.size());
  }
  return list;
}
