//===- CheckpointFuzzTest.cpp - Files that nobody wrote -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An index and headers are damaged at random, and get the right checksums. A
// load answers with an error or loads, and never does half of it. Sanitizers
// see what it reads.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "SealedCheckpoint.h"
#include "checkpoint/inspect.h"

#include <random>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

class Damage {
public:
  explicit Damage(uint64_t seed) : random(seed) {}

  /// |text| with one to three changes.
  std::string apply(std::string text) {
    for (size_t changes = pick(3) + 1; changes-- > 0 && !text.empty();)
      change(text);
    return text;
  }

private:
  size_t pick(size_t count) { return random() % count; }

  void change(std::string &text) {
    static const char *const numbers[] = {"0",
                                          "-1",
                                          "1",
                                          "4294967296",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "1e3",
                                          "1.5",
                                          "null",
                                          "[]",
                                          "{}",
                                          "\"\""};
    static const char characters[] = "{}[]\",:0- \\\0\xff";
    size_t at = pick(text.size());
    size_t length = std::min(pick(40) + 1, text.size() - at);
    switch (pick(5)) {
    case 0:
      text[at] = characters[pick(sizeof(characters) - 1)];
      return;
    case 1:
      text.erase(at, length);
      return;
    case 2:
      text.insert(pick(text.size()), text.substr(at, length));
      return;
    case 3: // a piece of the text in another place
      text.replace(at, length, text.substr(pick(text.size()), length));
      return;
    default: // the next number
      at = std::min(text.find_first_of("0123456789", at), text.size());
      length = text.find_first_not_of("0123456789", at);
      text.replace(at, std::min(length, text.size()) - at,
                   numbers[pick(std::size(numbers))]);
    }
  }

  std::mt19937_64 random;
};

constexpr uint64_t kInputs = 2000;

} // namespace

TEST(CheckpointFuzz, EachInputHasAnAnswer) {
  SealedCheckpoint checkpoint;
  const std::string index = readText(checkpoint.index);
  const std::string first = readText(checkpoint.first);
  const std::string header = checkpoint.header(), data = checkpoint.data();
  int loaded = 0, refused = 0;
  runSteps(makeStateStep({1}).get(), [&](int32_t, zero_rt_step *step) {
    fillState(step, 2);
    for (uint64_t seed = 0; seed < kInputs && !testing::Test::HasFailure();
         ++seed) {
      SCOPED_TRACE(seed);
      Damage damage(seed);
      if (seed % 4 == 0) {
        std::string text = index.substr(0, index.rfind("  \"checksum\""));
        checkpoint.seal(damage.apply(text) + "  \"checksum\": \"");
      } else {
        checkpoint.putHeader(damage.apply(header), data);
      }
      std::vector<std::string> errors;
      inspectCheckpoint(checkpoint.folder.at(), /*readsData=*/true, errors);
      zero_rt_status status = load(step, checkpoint.folder.at());
      if (status) {
        ++refused;
        EXPECT_TRUE(status == ZERO_RT_INVALID_ARGUMENT ||
                    status == ZERO_RT_UNSUPPORTED)
            << zero_rt_message();
        EXPECT_TRUE(hasState(step, 2)) << zero_rt_message();
      } else { // data keeps its checksum, and so its value
        ++loaded;
        EXPECT_TRUE(errors.empty());
        EXPECT_TRUE(hasState(step, 1));
        fillState(step, 2);
      }
      writeText(checkpoint.index, index);
      writeText(checkpoint.first, first);
    }
  });
  EXPECT_GT(loaded, 0);
  EXPECT_GT(refused, int(kInputs / 2));
}
