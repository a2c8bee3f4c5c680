//===- CheckpointBoxTest.cpp - Parts of parameters as boxes ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// exec/checkpoint.test loads checkpoints on meshes with other sizes of axes.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "SealedCheckpoint.h"
#include "TrainStep.h"
#include "checkpoint/box.h"

#include <map>
#include <random>

using namespace zero_rt;
using namespace zero_rt::test;

namespace {

/// Where each element of |box| is in the parameter.
std::vector<int64_t> positionsOf(const Box &box) {
  std::vector<int64_t> positions{0};
  for (const Box::Dimension &dim : box.dimensions) {
    std::vector<int64_t> next;
    for (int64_t outer : positions)
      for (int64_t i = 0; i < dim.extent; ++i)
        next.push_back(outer * dim.whole + dim.begin + i);
    positions = std::move(next);
  }
  return positions;
}

/// A step whose parameters have shapes: the first one is 2 x 5.
LibraryBuilder makeShaped(int64_t ranks) {
  LibraryBuilder library = makeStateStep({ranks});
  library.dimensions = {{2, -1}, {5, -1}};
  library.dimensionEnds = {2};
  for (int p = Bias; p < NumTrainParameters; ++p) {
    library.dimensions.push_back({trainSizes[p], -1});
    library.dimensionEnds.push_back(int64_t(library.dimensions.size()));
  }
  return library;
}

} // namespace

TEST(CheckpointBox, RunsHaveEachCommonElementOnce) {
  std::mt19937_64 random(7);
  auto below = [&](int64_t end) { return int64_t(random() % uint64_t(end)); };
  int64_t common = 0;
  for (int i = 0; i < 3000; ++i) {
    Box a, b;
    for (int64_t d = 1 + below(3); d > 0; --d) {
      int64_t whole = below(20) ? 1 + below(6) : 0;
      for (Box *box : {&a, &b}) {
        int64_t begin = below(3) ? 0 : below(whole + 1);
        int64_t rest = whole - begin;
        box->dimensions.push_back(
            {whole, begin, below(3) ? rest : below(rest + 1)});
      }
    }
    auto draw = [&](const Box &box) {
      int64_t begin = below(3) ? 0 : below(box.elements() + 1);
      int64_t rest = box.elements() - begin;
      return Range{begin, begin + (below(3) ? rest : below(rest + 1))};
    };
    Range ofA = draw(a), ofB = draw(b);
    std::vector<int64_t> inA = positionsOf(a), inB = positionsOf(b);
    std::map<int64_t, int64_t> expected, found; // from |a| to |b|
    for (int64_t x = ofA.begin; x < ofA.end; ++x)
      for (int64_t y = ofB.begin; y < ofB.end; ++y)
        if (inA[size_t(x)] == inB[size_t(y)])
          expected[x] = y;
    forEachRun(a, ofA, b, ofB, [&](int64_t x, int64_t y, int64_t count) {
      for (int64_t k = 0; k < count; ++k)
        EXPECT_TRUE(found.insert({x + k, y + k}).second);
    });
    ASSERT_EQ(found, expected) << a.text() << " and " << b.text();
    common += int64_t(expected.size());
  }
  EXPECT_GT(common, 3000);
}

TEST(CheckpointBox, TextsAreChecked) {
  Box box;
  ASSERT_TRUE(readBox("24:12+6x8:0+8", 48, box));
  EXPECT_EQ(box.text(), "24:12+6x8:0+8");
  EXPECT_FALSE(box.isWhole());
  EXPECT_EQ(wholeOf(box).text(), "24:0+24x8:0+8");
  EXPECT_TRUE(box.hasShapeOf(wholeOf(box)));
  ASSERT_TRUE(readBox("0:0+0", 0, box));
  EXPECT_FALSE(box.hasShapeOf(wholeOf(Box{{{0, 0, 0}, {8, 0, 8}}})));
  for (const char *text :
       {"", "x", "6", "6:0", "6:0+", "6:0+6x", "x6:0+6", "6:1+6", "6:7+0",
        "-6:0+6", "6:-1+6", "6:0+6 ", "6:0+6y2:0+2", "tp=0/2", "6:0+5",
        "9223372036854775808:0+6", "6:0+9223372036854775807",
        "9223372036854775807:0+9223372036854775807x2:0+2"})
    EXPECT_FALSE(readBox(text, 6, box)) << text;
}

TEST(CheckpointBox, LibrariesWithWrongShapesAreRefused) {
  auto refuse = [](const char *text,
                   const std::function<void(LibraryBuilder &)> &change) {
    LibraryBuilder library = makeShaped(1);
    change(library);
    expectRefused(library.get(), ZERO_RT_INTERNAL, text);
  };
  refuse("is corrupt: shape 0: shape has other elements",
         [](auto &library) { library.dimensions[0].extent = 3; });
  refuse("is corrupt: shape 1: bad dimension",
         [](auto &library) { library.dimensions[2].extent = -3; });
  refuse("is corrupt: shape 1: bad dimension",
         [](auto &library) { library.dimensions[2].axes = 1; });
  refuse("is corrupt: shape 1: bad number of dimensions",
         [](auto &library) { library.dimensionEnds[1] = 1; });
  refuse("is corrupt: shape 3: bad number of dimensions",
         [](auto &library) { library.dimensionEnds[3] = 6; });
  refuse("is corrupt: shape 0: too many elements", [](auto &library) {
    library.dimensions[0].extent = library.dimensions[1].extent = INT64_MAX;
  });
}

/// Two ranks have halves of each row of 2 x 10.
static LibraryBuilder makeHalves(bool hasShapes) {
  StateLayout layout = {2};
  layout.parts = 2;
  LibraryBuilder library = makeStateStep(layout);
  if (!hasShapes)
    return library;
  LibraryBuilder shaped = makeShaped(2);
  library.dimensions = shaped.dimensions;
  library.dimensionEnds = shaped.dimensionEnds;
  for (int64_t end : library.dimensionEnds)
    library.dimensions[size_t(end - 1)].axes = 1;
  return library;
}

// As steps save that do not know shapes, and as version 1 was.
TEST(CheckpointBox, PartsByAxesAreLoaded) {
  SealedCheckpoint checkpoint;
  saveState(makeHalves(/*hasShapes=*/false).get(), checkpoint.folder.at(), 1);
  EXPECT_NE(readText(checkpoint.folder.at("save-2/rank-00000.safetensors"))
                .find("tp=0/2"),
            std::string::npos);
  LibraryBuilder halves = makeHalves(/*hasShapes=*/true);
  expectLoads(halves.get(), checkpoint.folder.at(), 1);
  checkpoint.seal(
      replaced(readText(checkpoint.index), "\"version\": 2", "\"version\": 1"));
  expectLoads(halves.get(), checkpoint.folder.at(), 1);
  expectDoesNotLoad(makeShaped(2).get(), checkpoint.folder.at(),
                    "has part 'tp=0/2', and this step has part ''; load it "
                    "with the same sizes of the axes");
}

// A file that claims other columns leaves one rank without elements, and gives
// the other one some twice.
TEST(CheckpointBox, EachElementIsInOneBox) {
  LibraryBuilder library = makeHalves(/*hasShapes=*/true);
  SealedCheckpoint checkpoint;
  saveState(library.get(), checkpoint.folder.at(), 1);
  checkpoint.first = checkpoint.folder.at("save-2/rank-00000.safetensors");
  expectLoads(library.get(), checkpoint.folder.at(), 1);
  std::string header = checkpoint.header();
  const std::string mine = " 2:0+2x10:0+5", other = " 2:0+2x10:1+5";
  size_t at = header.find(mine, header.find("\"fc1.weight.master\""));
  ASSERT_NE(at, header.npos) << header;
  checkpoint.putHeader(header.replace(at, mine.size(), other),
                       checkpoint.data());
  runSteps(library.get(), [&](int32_t rank, zero_rt_step *step) {
    expectStatus(ZERO_RT_INVALID_ARGUMENT, load(step, checkpoint.folder.at()),
                 rank == 0
                     ? "lacks elements of 'fc1.weight.master' [0, 10) of part "
                       "2:0+2x10:0+5"
                     : "save-2/rank-00001.safetensors' has element 0 of "
                       "'fc1.weight.master' [0, 10) of part 2:0+2x10:5+5, and "
                       "so has another piece");
  });
}

TEST(CheckpointBox, WrongBoxesAreRefused) {
  SealedCheckpoint checkpoint;
  const std::string oldIndex = readText(checkpoint.index);
  const std::string oldFirst = readText(checkpoint.first);
  auto refuse = [&](const char *from, const char *box, const char *text,
                    const LibraryBuilder &library) {
    // Behind the checksum.
    std::string header = checkpoint.header();
    size_t at = header.find(from);
    ASSERT_NE(at, header.npos) << header;
    header.insert(header.find('"', at + std::string(from).size()),
                  std::string(" ") + box);
    checkpoint.putHeader(header, checkpoint.data());
    LibraryBuilder copy = library;
    expectDoesNotLoad(copy.get(), checkpoint.folder.at(), text);
    writeText(checkpoint.index, oldIndex);
    writeText(checkpoint.first, oldFirst);
  };
  const char *weight = "\"fc1.weight.master\":\"0 10 10";
  LibraryBuilder shaped = makeShaped(2);
  refuse(weight, "2:0+2x5:0+5",
         "this step was compiled by a zero-compile that "
         "leaves out shapes; compile it again",
         makeStateStep({2}));
  refuse(weight, "5:0+5x2:0+2",
         "'fc1.weight.master' has shape 5x2, expected 2x5", shaped);
  refuse(weight, "10:0+10", "'fc1.weight.master' has shape 10, expected 2x5",
         shaped);
  refuse(weight, "2:0+2x5:0+4",
         "has part '2:0+2x5:0+4', and this step has part ''", shaped);
  // Another part of a larger parameter.
  refuse(weight, "4:1+2x5:0+5",
         "'fc1.weight.master' has shape 4x5, expected 2x5", shaped);
  expectLoads(shaped.get(), checkpoint.folder.at(), 1);
}
