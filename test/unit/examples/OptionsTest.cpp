//===- OptionsTest.cpp - The command line and the loss curve --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Options.h"
#include "examples/transformer/LossCurve.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace transformer;

static std::string errorOf(std::vector<const char *> arguments,
                           Options &options) {
  arguments.insert(arguments.begin(), "char_model");
  std::string error;
  bool good =
      parseOptions(int(arguments.size()), const_cast<char **>(arguments.data()),
                   options, error);
  EXPECT_EQ(good, error.empty());
  return error;
}

TEST(Options, BothFormsOfAValue) {
  Options options;
  EXPECT_EQ(
      errorOf({"--library", "x.so", "--batch=3", "--steps", "9", "--rate=0.5"},
              options),
      "");
  EXPECT_EQ(options.library, "x.so");
  EXPECT_EQ(options.batch, 3);
  EXPECT_EQ(options.steps, 9);
  EXPECT_EQ(options.rate, 0.5);
  EXPECT_FALSE(options.checkPreconditions);
  EXPECT_EQ(errorOf({"--library", "x.so", "--check-preconditions"}, options),
            "");
  EXPECT_TRUE(options.checkPreconditions);
}

TEST(Options, RefusesWhatItDoesNotKnow) {
  Options options;
  EXPECT_EQ(errorOf({"--emit-step", "--speed", "9"}, options),
            "unknown option '--speed'");
  EXPECT_EQ(errorOf({"--emit-step", "--speed"}, options),
            "unknown option '--speed'");
  EXPECT_EQ(errorOf({"step.mlir"}, options), "unknown option 'step.mlir'");
}

TEST(Options, UnitsAreOfTheStepThatIsWritten) {
  Options options;
  EXPECT_EQ(errorOf({"--library", "x.so"}, options), "");
  EXPECT_FALSE(options.units);
  EXPECT_EQ(errorOf({"--library", "x.so", "--units"}, options),
            "--units is for --emit-step and --list-parameters; a library says "
            "itself which units it has");
  Options other;
  EXPECT_EQ(errorOf({"--emit-step", "--units"}, other), "");
  EXPECT_TRUE(other.units);
}

TEST(Options, ResumesFromTheFolderOfCheckpoints) {
  Options options;
  EXPECT_EQ(errorOf({"--library", "x.so", "--resume"}, options),
            "--resume takes the checkpoint from the folder of --save, which is "
            "missing");
  EXPECT_EQ(errorOf({"--library", "x.so", "--resume", "--save", "run",
                     "--save-every=7", "--imported"},
                    options),
            "");
  EXPECT_TRUE(options.resume && options.imported);
  EXPECT_EQ(options.save, "run");
  EXPECT_EQ(options.saveEvery, 7);
}

TEST(Options, RefusesNumbersOutOfRange) {
  Options options;
  EXPECT_EQ(errorOf({"--emit-step", "--threads", "-1"}, options),
            "--threads takes a whole number from 0 to 256, not '-1'");
  for (const char *value :
       {"0", "-1", "", "4x", "99999999999999999999", "4097"})
    EXPECT_EQ(errorOf({"--emit-step", "--batch", value}, options),
              "--batch takes a whole number from 1 to 4096, not '" +
                  std::string(value) + "'");
  EXPECT_EQ(errorOf({"--emit-step", "--rate", "nan"}, options),
            "--rate takes a positive number, not 'nan'");
  EXPECT_EQ(errorOf({"--emit-step", "--heads", "7"}, options),
            "--heads 7 does not divide --width 64");
}

TEST(Options, AMeshHasStagesAndCopies) {
  Options options;
  EXPECT_EQ(options.mesh.ranks(), 4);
  EXPECT_EQ(errorOf({"--emit-step", "--mesh", "pp=2,dp=3"}, options), "");
  EXPECT_EQ(options.mesh.stages, 2);
  EXPECT_EQ(options.mesh.copies, 3);
  EXPECT_EQ(options.mesh.stageOf(4), 1);
  EXPECT_EQ(options.mesh.copyOf(4), 1);
  EXPECT_EQ(errorOf({"--emit-step", "--mesh=dp=2"}, options), "");
  EXPECT_EQ(options.mesh.stages, 1);
  EXPECT_EQ(errorOf({"--emit-step", "--mesh=dp=2,pp=2"}, options), "");
  EXPECT_EQ(options.mesh.stages, 2);
  for (const char *value :
       {"", "4", "dp=0", "dp=-1", "dp=2,", "dp=2,dp=2", "tp=2", "dp=2 pp=2",
        "pp=2;dp=2", "dp=257", "pp=16,dp=17", "dp=99999999999999999999",
        "dp= 2", "dp=2,pp=", "=2"})
    EXPECT_EQ(errorOf({"--emit-step", "--mesh", value}, options),
              "--mesh takes the sizes of pp and dp, such as pp=2,dp=2, for at "
              "most 256 ranks, not '" +
                  std::string(value) + "'");
  EXPECT_EQ(errorOf({"--emit-step", "--mesh", "pp=3"}, options),
            "--mesh pp=3 needs as many --layers, got 2");
}

TEST(Options, NeedsAValueAndOneTask) {
  Options options;
  EXPECT_EQ(errorOf({"--emit-step", "--text"}, options),
            "--text takes the name of a file");
  EXPECT_EQ(errorOf({"--library", "x", "--losses="}, options),
            "--losses takes the name of a file");
  EXPECT_EQ(errorOf({"--emit-step", "--steps"}, options),
            "--steps takes a whole number from 1 to 1000000, not ''");
  Options none, both;
  EXPECT_EQ(errorOf({}, none),
            "give one of --emit-step, --list-parameters and --library");
  EXPECT_EQ(errorOf({"--emit-step", "--library", "x"}, both),
            "give one of --emit-step, --list-parameters and --library");
}

TEST(LossCurve, ShortAndNonFiniteCurves) {
  EXPECT_EQ(lossCurve({}), "");
  EXPECT_EQ(lossCurve({2.0, 1.0}),
            "  steps     1-1     2.000 " + std::string(50, '#') +
                "\n  steps     2-2     1.000 " + std::string(25, '#') + "\n");
  EXPECT_EQ(lossCurve({2.0}, 7),
            "  steps     8-8     2.000 " + std::string(50, '#') + "\n");
  EXPECT_EQ(lossCurve({std::nan("")}), "  steps     1-1     nan \n");
}
