//===- Progress.cpp - How far a tool is, and what Ctrl-C leaves -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/driver/Progress.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <poll.h>
#include <unistd.h>

using namespace zero;

static constexpr std::chrono::seconds kQuiet(2);
static constexpr int kTickMs = 250;
static constexpr int kInterrupted = 130;

/// Written to by the signal handler, and where a progress ends.
static int wakeUp[2] = {-1, -1};

static void notify(char reason) {
  ssize_t written = write(wakeUp[1], &reason, 1);
  (void)written; // nothing else can be done in a signal handler
}

Progress::Progress(llvm::StringRef tool)
    : tool(tool.str()), isTerminal(isatty(STDERR_FILENO)) {
  if (pipe(wakeUp) != 0)
    return; // no line, and Ctrl-C ends the tool as it does any other
  llvm::sys::SetInterruptFunction([] { notify('i'); });
  watcher = std::thread([this] { watch(); });
}

Progress::~Progress() {
  if (!watcher.joinable())
    return;
  llvm::sys::SetInterruptFunction(nullptr);
  notify('q');
  watcher.join();
  close(wakeUp[0]);
  close(wakeUp[1]);
  clear();
}

void Progress::update(const llvm::Twine &what, int64_t done, int64_t total) {
  std::lock_guard<std::mutex> lock(mutex);
  this->what = what.str();
  this->done = done;
  this->total = total;
  updated = Clock::now();
}

void Progress::setSummary(const llvm::Twine &text) {
  std::lock_guard<std::mutex> lock(mutex);
  summary = text.str();
}

void Progress::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  clearLine();
}

void Progress::clearLine() {
  if (isShown)
    llvm::errs() << "\r\033[K";
  isShown = false;
}

void Progress::watch() {
  pollfd ready{wakeUp[0], POLLIN, 0};
  for (;;) {
    int count = poll(&ready, 1, isTerminal ? kTickMs : -1);
    if (count == 0) {
      print();
      continue;
    }
    char reason = 0;
    if (count > 0 && read(wakeUp[0], &reason, 1) == 1 && reason == 'i')
      interrupt();
    if (reason == 'q')
      return;
  }
}

void Progress::print() {
  std::lock_guard<std::mutex> lock(mutex);
  auto now = Clock::now();
  if (now - start < kQuiet || what.empty())
    return;
  // As long for each part that is left as for each that is done.
  auto seconds = [](auto duration) {
    return std::chrono::duration<double>(duration).count();
  };
  std::string left;
  if (done > 0) {
    double rest = seconds(updated - start) / done * (total - done) -
                  seconds(now - updated);
    left = llvm::formatv(", {0:f0} s left", std::max(rest, 0.0)).str();
  }
  llvm::errs() << "\r\033[K"
               << llvm::formatv("{0}, {1:f0} s so far{2}", what,
                                seconds(now - start), left);
  isShown = true;
}

void Progress::interrupt() {
  std::lock_guard<std::mutex> lock(mutex);
  clearLine();
  llvm::errs() << tool << ": interrupted";
  if (!what.empty())
    llvm::errs() << ": " << what;
  llvm::errs() << "\n";
  if (!summary.empty())
    llvm::errs() << summary << "\n";
  llvm::errs().flush();
  // Other threads go on using what a normal exit would destroy.
  _exit(kInterrupted);
}
