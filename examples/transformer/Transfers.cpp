//===- Transfers.cpp - Copies between the model and the step --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Transfers.h"

#include "examples/transformer/Check.h"

namespace transformer {

static int64_t bytesOf(zero_rt_dtype dtype, int64_t elements) {
  return elements * (dtype == ZERO_RT_F32 ? 4 : 2);
}

static zero_rt_tensor tensorOf(zero_rt_dtype dtype, int64_t elements,
                               void *data) {
  return {
      sizeof(zero_rt_tensor), dtype, ZERO_RT_SPACE_DEVICE, 0, elements, data};
}

Transfers::~Transfers() {
  if (room)
    check(zero_rt_release(runtime, room), "zero_rt_release", rank);
}

void Transfers::copy(void *dst, const void *src, int64_t bytes) {
  check(zero_rt_copy(runtime, dst, src, bytes), "zero_rt_copy", rank);
}

zero_rt_tensor Transfers::makeRoom(zero_rt_dtype dtype, int64_t elements,
                                   void *host) {
  if (!withGpu)
    return tensorOf(dtype, elements, host);
  int64_t bytes = bytesOf(dtype, elements);
  if (bytes > roomBytes) {
    if (room)
      check(zero_rt_release(runtime, room), "zero_rt_release", rank);
    check(zero_rt_allocate(runtime, bytes, &room), "zero_rt_allocate", rank);
    roomBytes = bytes;
  }
  return tensorOf(dtype, elements, room);
}

zero_rt_tensor Transfers::give(zero_rt_dtype dtype, int64_t elements,
                               const void *host) {
  zero_rt_tensor tensor = makeRoom(dtype, elements, const_cast<void *>(host));
  if (withGpu)
    copy(tensor.data, host, bytesOf(dtype, elements));
  return tensor;
}

void Transfers::fetch(const zero_rt_tensor &tensor, void *host) {
  if (withGpu)
    copy(host, tensor.data,
         bytesOf(zero_rt_dtype(tensor.dtype), tensor.elements));
}

const float *Transfers::read(size_t parameter, const zero_rt_tensor &view) {
  if (!withGpu)
    return static_cast<const float *>(view.data);
  std::vector<float> &values = parameters[parameter];
  values.resize(size_t(view.elements));
  fetch(view, values.data());
  return values.data();
}

} // namespace transformer
