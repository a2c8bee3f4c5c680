//===- JsonTest.cpp - The JSON of the runtime -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/json.h"
#include "Ranks.h"

using namespace zero_rt;
using namespace zero_rt::test;

namespace {
std::string textOf(const std::string &json) {
  Json value;
  expectOk(readJson(json, value));
  return value.text;
}
} // namespace

TEST(Json, ReadsValues) {
  Json value;
  expectOk(readJson(R"( {"a": [1, -2.5e3, true, null], "b": {}, "c": "x"} )",
                    value));
  ASSERT_EQ(value.kind, Json::Kind::Object);
  const Json *list = value.find("a");
  ASSERT_TRUE(list && list->items.size() == 4);
  EXPECT_EQ(list->items[1].text, "-2.5e3");
  EXPECT_EQ(list->items[2].kind, Json::Kind::Bool);
  EXPECT_EQ(list->items[3].kind, Json::Kind::Null);
  EXPECT_EQ(value.find("b")->kind, Json::Kind::Object);
  EXPECT_EQ(*value.findText("c"), "x");
  EXPECT_EQ(value.findText("a"), nullptr);
  EXPECT_EQ(value.find("d"), nullptr);
}

TEST(Json, ReadsWhatItWrites) {
  std::string all;
  for (int c = 0; c < 256; ++c)
    all += char(c);
  EXPECT_EQ(textOf(quote(all)), all);
  EXPECT_EQ(textOf(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(textOf(R"("\u0041\u00e9\u20AC\ud83d\ude00")"),
            "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(Json, CountsAreWholeNumbers) {
  auto count = [](const char *json) {
    Json value;
    int64_t out = -1;
    expectOk(readJson(json, value));
    return value.isCount(out) ? out : -1;
  };
  EXPECT_EQ(count("0"), 0);
  EXPECT_EQ(count("9223372036854775807"), INT64_MAX);
  for (const char *json :
       {"9223372036854775808", "-1", "1.0", "1e3", "\"1\"", "null", "[]", "+1"})
    EXPECT_EQ(count(json), -1) << json;
}

// The memory of a text is bounded.
TEST(Json, RefusesMoreValuesThanFilesHave) {
  std::string many = "[1";
  for (int i = 0; i < 1000; ++i)
    many += ",1";
  Json value;
  expectStatus(ZERO_RT_INVALID_ARGUMENT, readJson(many + "]", value),
               "too many values for so little text at byte");
}

TEST(Json, RefusesTheRest) {
  struct {
    std::string json;
    const char *text;
  } cases[] = {
      {"", "no value at byte 0"},
      {"{", "no string at byte 1"},
      {"{\"a\" 1}", "no ':' behind a key at byte 5"},
      {"{\"a\": 1", "no '}' or ',' behind a member at byte 7"},
      {"{\"a\": 1,}", "no string at byte 8"},
      {"{\"a\": 1, \"a\": 2}", "key \"a\" a second time"},
      {"[1 2]", "no ']' or ',' behind an item at byte 3"},
      {"[1,]", "no value at byte 3"},
      {"\"a", "no end of a string"},
      {"\"\n\"", "a control character in a string at byte 1"},
      {R"("\x")", "a wrong escape at byte 2"},
      {R"("\)", "a wrong escape"},
      {R"("\u12")", "a wrong escape"},
      {R"("\u12g4")", "a wrong escape"},
      {R"("\ud800")", "a wrong escape"},
      {R"("\ud800\u0041")", "a wrong escape"},
      {"nul", "no value at byte 0"},
      {"1 1", "text behind the value at byte 2"},
      {std::string(100000, '['), "nesting that is too deep"},
  };
  for (auto &one : cases) {
    Json value;
    expectStatus(ZERO_RT_INVALID_ARGUMENT, readJson(one.json, value), one.text);
  }
}
