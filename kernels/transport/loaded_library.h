// A shared library that may be missing: found when it is asked for, so that the program starts without it.
#pragma once

#include <dlfcn.h>

#include <string>
#include <vector>

namespace cpfit::kernels {

class LoadedLibrary {
 public:
  /// The first of these names that the system finds.
  explicit LoadedLibrary(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_ != nullptr) return;
    }
  }
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;
  ~LoadedLibrary() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }

  [[nodiscard]] bool loaded() const { return handle_ != nullptr; }
  /// Points `function` to the symbol; false, and null, where there is none.
  template <class Function>
  bool find(const char* symbol, Function*& function) const {
    function = handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle_, symbol));
    return function != nullptr;
  }

 private:
  void* handle_ = nullptr;
};

}  // namespace cpfit::kernels
