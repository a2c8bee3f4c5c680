//===- StepLibrary.cpp - A compiled step, loaded at run time --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/StepLibrary.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace transformer {

bool loadStep(const std::string &path, StepLibrary &out, std::string &error) {
  // Without a slash dlopen would search the system's folders.
  std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    error = dlerror();
    return false;
  }
  auto find = [&](const char *name, auto &function) {
    void *symbol = dlsym(handle, name);
    if (!symbol && error.empty())
      error = "'" + path + "' has no " + name +
              "; is it the library of a step called 'train'?";
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  find("train_create", out.create);
  find("train_destroy", out.destroy);
  find("train_find_parameter", out.findParameter);
  find("train_bind_parameter", out.bindParameter);
  find("train_parameter", out.parameter);
  find("train_begin_backward", out.beginBackward);
  find("train_gradient", out.gradient);
  find("train_accumulate", out.accumulate);
  find("train_apply", out.apply);
  find("train_loss_scale", out.lossScale);
  find("train_find_activation", out.findActivation);
  find("train_send", out.send);
  find("train_receive", out.receive);
  find("train_results", out.results);
  return error.empty();
}

void fail(const std::string &message) {
  std::fflush(stdout);
  std::fprintf(stderr, "char_model: %s\n", message.c_str());
  std::_Exit(1);
}

void check(zero_rt_status status, const char *call, int rank) {
  if (status != ZERO_RT_OK)
    fail("rank " + std::to_string(rank) + ": " + call + ": " +
         zero_rt_status_name(status) + ": " + zero_rt_message());
}

} // namespace transformer
