//===- HostileTest.cpp - What comes from other processes is checked -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank sends bytes that no rank sends. The ranks that read them report that,
// and read and write no memory that the bytes name.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "ThreadTransport.h"
#include "TrainStep.h"
#include "comm/process/control_messages.h"
#include "core/activations.h"
#include "core/refusal_reports.h"
#include "core/runtime.h"

#include <cstring>
#include <thread>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

const Tag kGather = {"all_gather", "b0", 64, ZERO_RT_F32, ZERO_RT_F32, 0};

/// What rank 0 says when rank 1 has sent |bytes|, and it then waits for rank 1
/// in a collective or for a message.
void expectRefused(int32_t channel, const std::vector<char> &bytes,
                   bool isActivation, zero_rt_status expected,
                   const char *text) {
  auto network = std::make_shared<Network>();
  zero_rt_transport mine = Network::connect(network, 0, 2);
  zero_rt_transport liar = Network::connect(network, 1, 2);
  zero_rt_group *group = nullptr;
  zero_rt_runtime *runtime = nullptr;
  auto options = sized<zero_rt_options>();
  options.timeout_ms = 5000;
  expectOk(zero_rt_transport_group_create(&mine, &group));
  expectOk(zero_rt_create(group, 0, &options, &runtime));
  void *request = nullptr;
  expectOk(liar.send(liar.context, 0, channel, bytes.data(),
                     int64_t(bytes.size()), &request));
  std::vector<float> data(64);
  if (isActivation) {
    MessageName name;
    name.step = 1;
    expectStatus(expected,
                 runtime->get()->messenger->receive(1, name, data.data(), 4,
                                                    "activation 'x'"),
                 text);
  } else {
    expectStatus(expected,
                 runtime->get()->communicator->allGather(kGather, data.data()),
                 text);
  }
  expectOk(zero_rt_destroy(runtime));
  expectOk(zero_rt_group_destroy(group));
  liar.cancel(liar.context, request);
  liar.destroy(liar.context);
}

TEST(Hostile, BytesOfEachChannelAreChecked) {
  const char *text = "rank 1 sent bytes that are no tag of a collective";
  expectRefused(0, std::vector<char>(sizeof(TagMessage), char(0xff)), false,
                ZERO_RT_MISMATCH, text);
  auto expectTag = [&](const std::function<void(CollectiveTag &)> &change,
                       const char *text) {
    TagMessage message;
    message.tag = makeTag(kGather, numberOf({0, 1}, 0), /*sequence=*/1);
    change(message.tag);
    std::vector<char> bytes(sizeof(message));
    std::memcpy(bytes.data(), &message, sizeof(message));
    expectRefused(0, bytes, false, ZERO_RT_MISMATCH, text);
  };
  expectTag([](CollectiveTag &tag) { tag.elements = -1; }, text);
  expectTag([](CollectiveTag &tag) { tag.bytes = 65; }, text);
  expectTag([](CollectiveTag &tag) { tag.bytes = 64; },
            "rank 1 sent 64 bytes with its tag of all_gather of 'b0', "
            "expected 0");
  expectTag([](CollectiveTag &tag) { tag.dtype = 200; },
            "rank 0 is in all_gather of 'b0' (64 x f32), rank 1 in all_gather "
            "of 'b0' (64 x unknown summed in f32)");
  // The liar does not tell the names.
  expectTag([](CollectiveTag &tag) { ++tag.names; },
            "rank 0 is in all_gather of 'b0', rank 1 in another collective");
  expectRefused(3, std::vector<char>(sizeof(ControlMessage), char(0xff)), false,
                ZERO_RT_MISMATCH,
                "rank 1 sent bytes that are no control message");
  // A notice of an unknown error, whose text does not end.
  expectRefused(2, std::vector<char>(256, 'x'), false, ZERO_RT_POISONED,
                std::string(251, 'x').c_str());
  std::vector<char> header(48, char(0xff));
  expectRefused(1, header, true, ZERO_RT_MISMATCH,
                "rank 1 sent bytes that are no activation");
  std::fill(header.begin(), header.end(), '\0');
  header[5] = 1; // 2^40 bytes
  expectRefused(
      1, header, true, ZERO_RT_MISMATCH,
      "rank 1 sent more than 16 GiB of activations that rank 0 has not");
}

/// What the ranks say of a step that lacks a gradient, after |change| of the
/// report that rank 1 sends.
void expectReport(const std::function<void(Report &)> &change,
                  zero_rt_status expected, const char *text) {
  auto network = std::make_shared<Network>();
  network->spoil(1, [&](int32_t channel, std::vector<char> &bytes) {
    ControlMessage message;
    if (channel != ControlChannel || bytes.size() != sizeof(message))
      return;
    std::memcpy(&message, bytes.data(), sizeof(message));
    if (message.kind != ControlMessage::Report)
      return;
    Report report;
    std::memcpy(&report, message.data, sizeof(report));
    change(report);
    std::memcpy(message.data, &report, sizeof(report));
    std::memcpy(bytes.data(), &message, sizeof(message));
  });
  LibraryBuilder builder = makeTrainStep(2);
  const zero_rt_library &library = builder.get();
  auto run = [&](int32_t rank) {
    zero_rt_transport transport = Network::connect(network, rank, 2);
    zero_rt_group *group = nullptr;
    zero_rt_runtime *runtime = nullptr;
    expectOk(zero_rt_transport_group_create(&transport, &group));
    expectOk(zero_rt_create(group, rank, nullptr, &runtime));
    {
      StepHandle step = createStep(runtime, library);
      expectOk(callsOf(step.get()).begin_backward(step.get(), 0));
      auto results = sized<zero_rt_results>();
      zero_rt_status status = applyStep(step.get());
      if (!status)
        status = callsOf(step.get()).results(step.get(), &results);
      if (rank == 0)
        expectStatus(expected, status, text);
    }
    expectOk(zero_rt_destroy(runtime));
    expectOk(zero_rt_group_destroy(group));
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
}

TEST(Hostile, NumbersInReportsAreChecked) {
  const char *text = "rank 1 sent bytes that are no report about its step";
  expectReport([](Report &) {}, ZERO_RT_MISSING_GRADIENT, "on rank 1");
  expectReport([](Report &report) { report.first[0].parameter = 1 << 30; },
               ZERO_RT_MISMATCH, text);
  expectReport([](Report &report) { report.first[0].parameter = -1; },
               ZERO_RT_MISMATCH, text);
  expectReport([](Report &report) { report.missing = INT64_MAX; },
               ZERO_RT_MISMATCH, text);
  expectReport([](Report &report) { report.badInputs = -1; }, ZERO_RT_MISMATCH,
               text);
  expectReport(
      [](Report &report) {
        report.badInputs = 1;
        report.firstBad[0].input = 1 << 30;
      },
      ZERO_RT_MISMATCH, text);
  expectReport(
      [](Report &report) {
        report.nonfinite = 1;
        report.firstNonfinite[0].parameter = 1 << 30;
      },
      ZERO_RT_MISMATCH, text);
  expectReport(
      [](Report &report) {
        report.hasUnread = 1;
        report.unreadActivation = 1 << 30;
      },
      ZERO_RT_MISSING_GRADIENT, "activation 'unknown' of micro-batch 0");
}

} // namespace
