// rewrite FORMAT FILE...: loads each file and saves its contents to FILE.again. Used by the scripts in this folder.
#include <brigade/core/npy.h>
#include <brigade/core/safetensors.h>

#include <cstdio>
#include <exception>
#include <string>

namespace {

bool rewrite(const std::string& format, const std::string& path) {
  if (format == "safetensors") {
    const brigade::Safetensors held = brigade::load_safetensors(path);
    brigade::save_safetensors(path + ".again", held.tensors, held.metadata);
    return true;
  }
  if (format == "npy") {
    brigade::save_npy(path + ".again", brigade::load_npy(path));
    return true;
  }
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    for (int i = 2; i < count; ++i) {
      if (!rewrite(arguments[1], arguments[i])) {
        std::fprintf(stderr, "unknown format '%s'\n", arguments[1]);
        return 2;
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
