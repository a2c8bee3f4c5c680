//===- Child.cpp - A function in a process of its own ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM has processes that run a program, and threads that survive a crash. Code
// that was just generated may crash or hang, and what it is compared with is in
// this process. Therefore it is a fork.
//
//===----------------------------------------------------------------------===//

#include "codegen/validate/Child.h"

#include "llvm/ADT/StringExtras.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

using namespace mlir;
using namespace zero;
using Clock = std::chrono::steady_clock;

/// Writes the text of |function| to |out| and ends the process.
[[noreturn]] static void runChild(llvm::function_ref<std::string()> function,
                                  int out) {
  // LLVM's handlers print a stack, and remove the files that the parent writes.
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGTERM,
                     SIGINT, SIGHUP, SIGPIPE})
    ::signal(signal, SIG_DFL);
  std::string text = function();
  size_t written = 0;
  while (written < text.size()) {
    ssize_t count = ::write(out, text.data() + written, text.size() - written);
    if (count < 0 && errno != EINTR)
      ::_exit(1);
    written += std::max<ssize_t>(count, 0);
  }
  ::_exit(0);
}

/// Reads |in| to its end. Returns false if that does not come before |end|.
static bool readAll(int in, Clock::time_point end, std::string &text) {
  char buffer[4096];
  while (true) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - Clock::now());
    pollfd poll = {in, POLLIN, 0};
    int ready = ::poll(&poll, 1, std::max<int>(left.count(), 0));
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0)
      return false;
    ssize_t count = ::read(in, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return true;
    text.append(buffer, count);
  }
}

Child::Child(llvm::function_ref<std::string()> function) {
  int ends[2];
  if (::pipe(ends) != 0) {
    startError = errno;
    return;
  }
  pid = ::fork();
  startError = pid < 0 ? errno : 0;
  if (pid == 0) {
    ::close(ends[0]);
    runChild(function, ends[1]);
  }
  ::close(ends[1]);
  out = ends[0];
}

/// Returns what waitpid returns.
static pid_t reap(pid_t child, int &status) {
  pid_t waited;
  do
    waited = ::waitpid(child, &status, 0);
  while (waited < 0 && errno == EINTR);
  return waited;
}

Child::~Child() {
  if (out >= 0)
    ::close(out);
  if (pid <= 0)
    return;
  int status = 0;
  ::kill(pid, SIGKILL);
  reap(pid, status);
}

LogicalResult Child::wait(std::chrono::milliseconds limit, std::string &text) {
  text.clear();
  if (startError != 0) {
    text = std::string("cannot start a process: ") + std::strerror(startError);
    return failure();
  }
  bool hasEnded = readAll(out, Clock::now() + limit, text);
  if (!hasEnded)
    ::kill(pid, SIGKILL);
  int status = 0;
  pid_t waited = reap(std::exchange(pid, -1), status);
  if (waited < 0)
    text = std::string("cannot be waited for: ") + std::strerror(errno) +
           "; do not ignore SIGCHLD";
  else if (!hasEnded)
    text = "did not end within " + llvm::utostr(limit.count()) + " ms";
  else if (WIFSIGNALED(status))
    text = std::string("ended by the signal '") +
           ::strsignal(WTERMSIG(status)) + "'";
  else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    text = "ended with exit status " + llvm::utostr(WEXITSTATUS(status));
  else
    return success();
  return failure();
}

LogicalResult zero::runInChild(llvm::function_ref<std::string()> function,
                               std::chrono::milliseconds limit,
                               std::string &text) {
  return Child(function).wait(limit, text);
}
