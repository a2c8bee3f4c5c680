//===- Arrivals.cpp - In which order gradients arrive ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Arrivals.h"

#include "codegen/host/Tables.h"

#include <algorithm>

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
  std::vector<Arrival> order;
  for (auto [k, gradients] : llvm::enumerate(inputs.backwards)) {
    size_t first = order.size();
    for (int32_t id = parameters.size() - 1; id >= 0; --id) {
      const ParameterInfo &parameter = parameters[id];
      auto it = gradients.find(parameter.name);
      if (it == gradients.end())
        continue;
      for (int64_t use = 0; use < parameter.uses; ++use) {
        Bytes bytes = pack(it->second, parameter.arrivalType);
        if (use > 0)
          std::fill(bytes.begin(), bytes.end(), 0);
        order.push_back({static_cast<int64_t>(k), id, std::move(bytes), {}});
        order.back().tensor = makeTensor(
            order.back().bytes, parameter.arrivalType, it->second.size());
      }
    }
    if (arrivals == Arrivals::shuffled)
      std::shuffle(order.begin() + first, order.end(), random);
  }
  if (arrivals == Arrivals::interleaved)
    std::shuffle(order.begin(), order.end(), random);
  return order;
}
