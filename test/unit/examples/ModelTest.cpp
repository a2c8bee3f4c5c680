//===- ModelTest.cpp - The backward pass and differences ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FiniteDifference.h"

#include "examples/transformer/Model.h"

using namespace transformer;

namespace {

/// A model in f64 with values far from the initial ones, so that every term of
/// the backward pass counts.
struct SmallModel : testing::Test {
  ModelShape shape{/*vocabulary=*/7, /*context=*/5, /*width=*/8, /*heads=*/2,
                   /*layers=*/2};
  std::vector<Parameter> parameters = listParameters(shape);
  Model<double> model{shape, /*batch=*/2};
  std::vector<std::vector<double>> values;
  std::vector<int32_t> inputs = {0, 1, 2, 3, 4, 5, 6, 0, 1, 2};
  std::vector<int32_t> targets = {1, 2, 3, 4, 5, 6, 0, 1, 2, 3};

  void SetUp() override {
    std::vector<const double *> views;
    for (const Parameter &parameter : parameters) {
      values.push_back(randomValues(parameter.elements(), 1 + values.size()));
      for (double &value : values.back())
        value = parameter.mean + 0.3 * value;
    }
    for (const auto &value : values)
      views.push_back(value.data());
    model.setParameters(views);
  }
};

} // namespace

TEST_F(SmallModel, BackwardOfEveryParameter) {
  std::vector<std::vector<double>> gradients(parameters.size());
  model.forward(inputs.data(), targets.data());
  model.backward(0.5, [&](int32_t i, const double *gradient) {
    gradients[i].assign(gradient, gradient + parameters[i].elements());
  });
  auto loss = [&] {
    return 0.5 * model.forward(inputs.data(), targets.data());
  };
  for (size_t i = 0; i < parameters.size(); ++i)
    expectGradient(parameters[i].name, loss, values[i], gradients[i],
                   /*stride=*/3);
}

TEST_F(SmallModel, EveryGradientOnceFromLastLayerToFirst) {
  std::vector<int32_t> order;
  model.forward(inputs.data(), targets.data());
  model.backward(1.0, [&](int32_t i, const double *) { order.push_back(i); });
  ASSERT_EQ(order.size(), parameters.size());
  std::vector<int> seen(parameters.size());
  for (int32_t i : order)
    ++seen[i];
  for (int count : seen)
    EXPECT_EQ(count, 1);
  EXPECT_EQ(parameters[order.front()].name, "head.weight");
  EXPECT_EQ(parameters[order.back()].name, "token.embedding");
}

// The same bits, in whatever stages it is cut.
TEST_F(SmallModel, StagesMakeUpTheWhole) {
  auto take = [&](auto &gradients) {
    return [&](int32_t i, const double *gradient) {
      EXPECT_TRUE(gradients[i].empty());
      gradients[i].assign(gradient, gradient + parameters[i].elements());
    };
  };
  std::vector<std::vector<double>> whole(parameters.size()),
      parts(parameters.size());
  double loss = model.forward(inputs.data(), targets.data());
  model.backward(0.5, take(whole));

  auto placed = listParameters(shape, 2);
  std::vector<Model<double>> stages;
  for (int64_t s = 0; s < 2; ++s) {
    std::vector<const double *> views;
    for (size_t i = 0; i < placed.size(); ++i)
      views.push_back(placed[i].stage == s ? values[i].data() : nullptr);
    stages.emplace_back(shape, 2, s, 2).setParameters(views);
  }
  EXPECT_EQ(stages[0].forward(inputs.data(), targets.data()), 0);
  stages[1].residuals() = stages[0].residuals();
  EXPECT_EQ(stages[1].forward(inputs.data(), targets.data()), loss);
  stages[1].backward(0.5, take(parts));
  stages[0].residualGradients() = stages[1].residualGradients();
  stages[0].backward(0.5, take(parts));
  EXPECT_EQ(parts, whole);
}

TEST_F(SmallModel, SinglePrecisionFollowsDouble) {
  std::vector<std::vector<float>> single;
  std::vector<const float *> views;
  for (const auto &value : values)
    single.emplace_back(value.begin(), value.end());
  for (const auto &value : single)
    views.push_back(value.data());
  Model<float> narrow(shape, 2);
  narrow.setParameters(views);
  EXPECT_NEAR(narrow.forward(inputs.data(), targets.data()),
              model.forward(inputs.data(), targets.data()), 1e-5);
}

TEST(Parameters, InitialValuesDependOnTheSeedOnly) {
  ModelShape shape;
  shape.vocabulary = 9;
  auto parameters = listParameters(shape);
  EXPECT_EQ(initialValues(parameters, 1), initialValues(parameters, 1));
  EXPECT_NE(initialValues(parameters, 1), initialValues(parameters, 2));
}
