//===- client_device.cpp - A device of the client -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/client/client_device.h"

#include "core/executables.h"
#include "core/structs.h"
#include "device/host/host_program.h"
#include "device/registry.h"

#include <memory>
#include <string>
#include <vector>

using namespace zero_rt;

namespace {

/// Cuts launches and adds partial sums as on the CPU, so that the sums have the
/// same bits.
class ClientProgram final : public HostProgram {
public:
  ClientProgram(const zero_rt_library &library, double *slots, ThreadPool &pool,
                const zero_rt_device_functions &functions, void *context)
      : HostProgram(library, slots, pool), functions(functions),
        context(context) {}
  ~ClientProgram() override {
    if (isLoaded)
      functions.unload(context, code);
  }

  zero_rt_status load() {
    ZERO_RT_TRY(findExecutables(library, functions.name, executables));
    ZERO_RT_TRY(functions.load(context, executables.data(),
                               int64_t(executables.size()), &code));
    isLoaded = true;
    return ZERO_RT_OK;
  }
  zero_rt_status runScalars(int32_t program) override {
    return functions.run_scalars(code, program,
                                 library.scalar_programs[program], slots);
  }

private:
  zero_rt_status runPieces(const Launch &launch, double *partials) override {
    zero_rt_device_launch given = {};
    given.struct_size = sizeof(given);
    given.kernel = launch.kernel;
    given.host_kernel = library.kernels[launch.kernel];
    given.operands = launch.operands;
    given.num_operands = launch.numOperands;
    given.pieces = pieces.data();
    given.num_pieces = int64_t(pieces.size());
    given.partials = partials;
    return functions.launch(code, &given);
  }

  const zero_rt_device_functions &functions;
  void *context;
  std::vector<zero_rt_executable> executables;
  void *code = nullptr;
  bool isLoaded = false;
};

/// Lives as long as its registration.
struct Registered {
  std::string name;
  zero_rt_device_functions functions;
};

} // namespace

zero_rt_status ClientDevice::create(const zero_rt_device_functions &functions,
                                    const zero_rt_options &options,
                                    int32_t threads,
                                    std::unique_ptr<Device> &out) {
  std::unique_ptr<ClientDevice> device(new ClientDevice(functions, threads));
  ZERO_RT_TRY(functions.create(&options, &device->context));
  device->isCreated = true;
  out = std::move(device);
  return ZERO_RT_OK;
}

ClientDevice::~ClientDevice() {
  if (isCreated)
    functions.destroy(context);
}

void *ClientDevice::allocate(int32_t space, int64_t bytes) {
  return functions.allocate(context, space, bytes);
}

void ClientDevice::release(int32_t space, void *data) {
  if (data)
    functions.release(context, space, data);
}

zero_rt_status ClientDevice::copy(void *dst, const void *src, int64_t bytes) {
  return functions.copy(context, dst, src, bytes);
}

zero_rt_status ClientDevice::set(void *data, uint64_t bits, int64_t size,
                                 int64_t count) {
  return functions.set(context, data, bits, size, count);
}

zero_rt_status ClientDevice::load(const zero_rt_library &library, double *slots,
                                  std::unique_ptr<Program> *out) {
  auto program =
      std::make_unique<ClientProgram>(library, slots, pool, functions, context);
  ZERO_RT_TRY(program->load());
  *out = std::move(program);
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_device_register(const zero_rt_device_functions *functions) {
  zero_rt_device_functions given;
  ZERO_RT_TRY(readStruct(functions, "functions", given));
  if (!given.name || !given.create || !given.destroy || !given.allocate ||
      !given.release || !given.copy || !given.set || !given.load ||
      !given.unload || !given.launch || !given.run_scalars)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "functions lacks a name or a function");
  return guarded("zero_rt_device_register", [&]() -> zero_rt_status {
    auto kept = std::make_shared<Registered>();
    kept->name = given.name;
    kept->functions = given;
    kept->functions.name = kept->name.c_str();
    auto create = [kept](const DeviceRequest &request,
                         std::unique_ptr<Device> &out) {
      return ClientDevice::create(kept->functions, request.options,
                                  request.threads, out);
    };
    return registerDevice(
        {kept->name, /*number=*/-1, /*communicator=*/"", create});
  });
}
