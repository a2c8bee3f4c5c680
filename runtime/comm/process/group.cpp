//===- group.cpp - Ranks that are processes -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "comm/process/fabric_communicator.h"
#include "comm/process/message_queue.h"

#include "core/handle.h"
#include "core/structs.h"

#include <cstdlib>
#include <numeric>
#include <string>

using namespace zero_rt;

namespace {

/// This process's end of a group, in which it is one rank.
class ProcessGroup final : public Group {
public:
  explicit ProcessGroup(const zero_rt_transport &transport)
      : link(std::make_shared<Link>(lend(transport))),
        queue(std::make_shared<MessageQueue>(*link)), control(*link),
        reports(std::make_shared<Reports>(control)), desync(control) {
    link->transport.destroy = transport.destroy;
  }
  int32_t size() const override { return link->ranks(); }
  bool usesInterconnect() const override { return true; }
  // A runtime keeps the link alive.
  int32_t members() override { return int32_t(link.use_count() > 1); }
  zero_rt_status join(int32_t rank, int64_t timeoutMs, Device &device,
                      std::unique_ptr<Communicator> &out,
                      std::unique_ptr<Messenger> &messenger) override;

private:
  /// The caller destroys |transport| if one of the members cannot be made.
  static zero_rt_transport lend(zero_rt_transport transport) {
    transport.destroy = [](void *) {};
    return transport;
  }

  std::shared_ptr<Link> link;
  // Destroyed first.
  std::shared_ptr<MessageQueue> queue;
  ControlMessages control;
  std::shared_ptr<Reports> reports;
  DesyncCheck desync;
};

} // namespace

/// Reads a variable of the environment that is 0 or 1.
static zero_rt_status readFlag(const char *name, bool &flag) {
  const char *value = std::getenv(name);
  if (!value)
    return ZERO_RT_OK;
  std::string text = value;
  flag = text == "1";
  if (text == "0" || text == "1")
    return ZERO_RT_OK;
  return fail(ZERO_RT_INVALID_ARGUMENT, "%s is '%s', expected 0 or 1", name,
              value);
}

zero_rt_status ProcessGroup::join(int32_t rank, int64_t timeoutMs,
                                  Device &device,
                                  std::unique_ptr<Communicator> &out,
                                  std::unique_ptr<Messenger> &messenger) {
  if (rank != link->rank())
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "this process is rank %d of its group, not %d", link->rank(),
                rank);
  if (members())
    return fail(ZERO_RT_INVALID_ARGUMENT, "rank %d is already taken", rank);
  std::vector<int32_t> all(static_cast<size_t>(link->ranks()));
  std::iota(all.begin(), all.end(), 0);
  Interconnect *interconnect = nullptr;
  if (link->ranks() > 1)
    ZERO_RT_TRY(device.getInterconnect(&interconnect));
  if (interconnect && interconnect->hasLent())
    ZERO_RT_TRY(interconnect->checkLent(rank, link->ranks()));
  // Whether other processes may read the memory of this rank, and whether
  // activations go from device to device.
  bool isSharing = true, usesLanes = false;
  ZERO_RT_TRY(readFlag("ZERO_RT_SHARED_MEMORY", isSharing));
  ZERO_RT_TRY(readFlag("ZERO_RT_ACTIVATION_LANES", usesLanes));
  std::unique_ptr<Segment> segment;
  if (isSharing && link->ranks() > 1 && device.usesHostMemory())
    segment = Segment::create();
  messenger = std::make_unique<ProcessMessenger>(queue, timeoutMs);
  out = std::make_unique<ProcessCommunicator>(
      link, reports,
      std::make_shared<SharedMemory>(link->ranks(), std::move(segment)), all,
      /*step=*/0, timeoutMs);
  if (interconnect)
    out = std::make_unique<FabricCommunicator>(
        std::make_shared<Watchdog>(*link, desync, device, *interconnect),
        reports, device, std::move(out), std::move(all), timeoutMs, usesLanes);
  ++link->incarnation;
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status zero_rt_fail(zero_rt_status code,
                                           const char *message) {
  return fail(code, "%s", message);
}

static zero_rt_status checkTransport(const zero_rt_transport &transport) {
  if (transport.ranks < 1 || transport.ranks > mostRanks)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "transport->ranks is %d, expected 1 to %d", transport.ranks,
                mostRanks);
  if (transport.rank < 0 || transport.rank >= transport.ranks)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "transport->rank is %d, expected 0 to %d", transport.rank,
                transport.ranks - 1);
  if (!transport.send || !transport.receive || !transport.test ||
      !transport.cancel || !transport.error || !transport.destroy)
    return fail(ZERO_RT_INVALID_ARGUMENT, "transport lacks a function");
  return ZERO_RT_OK;
}

ZERO_RT_EXPORT zero_rt_status zero_rt_transport_group_create(
    const zero_rt_transport *transport, zero_rt_group **out_group) {
  if (!out_group)
    return fail(ZERO_RT_INVALID_ARGUMENT, "out_group is null");
  *out_group = nullptr;
  zero_rt_transport given;
  ZERO_RT_TRY(readStruct(transport, "transport", given));
  ZERO_RT_TRY(checkTransport(given));
  return guarded("zero_rt_transport_group_create", [&]() -> zero_rt_status {
    auto handle = std::make_unique<zero_rt_group>();
    Group *group = new ProcessGroup(given);
    *out_group = giveOut(std::move(handle), group);
    return ZERO_RT_OK;
  });
}
