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
  EXPECT_EQ(list->items[0].count, 1);
  EXPECT_EQ(list->items[1].kind, Json::Kind::Number);
  EXPECT_EQ(list->items[2].kind, Json::Kind::Bool);
  EXPECT_EQ(list->items[3].kind, Json::Kind::Null);
  EXPECT_EQ(value.find("b")->kind, Json::Kind::Object);
  EXPECT_EQ(*value.findText("c"), "x");
  EXPECT_EQ(value.findText("a"), nullptr);
  EXPECT_EQ(value.find("d"), nullptr);
}

TEST(Json, ReadsWhatItWrites) {
  std::string all;
  for (int c = 0; c < 128; ++c)
    all += char(c);
  for (int c = 0x80; c < 0x800; ++c) {
    all += char(0xC0 | c >> 6);
    all += char(0x80 | (c & 0x3F));
  }
  all += "\xE2\x82\xAC\xF0\x9F\x98\x80";
  EXPECT_EQ(textOf(quote(all)), all);
  EXPECT_EQ(textOf(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(textOf(R"("\u0041\u00e9\u20AC\ud83d\ude00")"),
            "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(Json, FindsBytesThatAreNotUtf8) {
  EXPECT_TRUE(isUtf8(""));
  EXPECT_TRUE(isUtf8("fc1.\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xEF\xBF\xBD"));
  for (const char *text : {"fc\xFF", "\xC3", "\xE2\x82", "\x80", "\xC0\x80",
                           "\xED\xA0\x80", "\xF4\x90\x80\x80"})
    EXPECT_FALSE(isUtf8(text)) << text;
  EXPECT_EQ(textOf(quote("fc\xFF")), "fc\xEF\xBF\xBD");
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
       {"9223372036854775808", "-1", "1.0", "1e3", "\"1\"", "null", "[]"})
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
      {"",
       "unexpected end of input; expected '[', '{', or a literal at byte 0"},
      {"{", "unexpected end of input; expected string literal at byte 1"},
      {"{\"a\" 1}", "unexpected number literal; expected ':' at byte 5"},
      {"{\"a\": 1", "unexpected end of input; expected '}' at byte 7"},
      {"{\"a\": 1,}", "unexpected '}'; expected string literal at byte 8"},
      {"{1: 1}", "unexpected number literal; expected string literal at byte"},
      {"{\"a\": 1, \"a\": 2}", "key \"a\" a second time at byte 15"},
      {"[{\"a\": {}, \"\\u0061\": 2}]", "key \"a\" a second time at byte 22"},
      {"[1 2]", "unexpected number literal; expected ']' at byte 3"},
      {"[1,]", "unexpected ']'; expected '[', '{', or a literal at byte 3"},
      {"[1}", "unexpected '}'; expected ']' at byte 2"},
      {"\"a", "missing closing quote; last read: '\"a' at byte 2"},
      {"\"\n\"", "control character U+000A (LF) must be escaped"},
      {"\"\xFF\"", "ill-formed UTF-8 byte; last read: '\"\xFF' at byte 1"},
      {"\"\xED\xA0\x80\"", "ill-formed UTF-8 byte"},
      {R"("\x")", "forbidden character after backslash; last read: '\"\\x'"},
      {R"("\)", "forbidden character after backslash"},
      {R"("\u12")", "'\\u' must be followed by 4 hex digits"},
      {R"("\u12g4")", "'\\u' must be followed by 4 hex digits"},
      {R"("\ud800")", "must be followed by U+DC00..U+DFFF"},
      {R"("\ud800\u0041")", "must be followed by U+DC00..U+DFFF"},
      {R"("\udc00")", "must follow U+D800..U+DBFF"},
      {"nul", "invalid literal; last read: 'nul' at byte 3"},
      {"+1", "invalid literal; last read: '+' at byte 0"},
      {"01", "unexpected number literal; expected end of input at byte 1"},
      {"1e999", "number overflow parsing '1e999' at byte 4"},
      {"1 1", "unexpected number literal; expected end of input at byte 2"},
      {"/**/1", "invalid literal; last read: '/' at byte 0"},
      {std::string("1\0", 2), "a zero byte at byte 1"},
      {std::string("[1\0]", 4), "a zero byte at byte 2"},
      {std::string(100000, '['), "nesting that is too deep at byte 17"},
  };
  for (auto &one : cases) {
    Json value;
    expectStatus(ZERO_RT_INVALID_ARGUMENT, readJson(one.json, value), one.text);
  }
}
