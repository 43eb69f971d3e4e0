// Takes blocks from the system, and gives a thread's free lists back when the thread ends.
#include <brigade/core/detail/block_pool.h>

#include <cstdlib>
#include <new>

namespace brigade::detail {
namespace {

struct AtThreadEnd {
  ~AtThreadEnd() {
    BlockLists& lists = block_lists;
    lists.gone = true;
    for (size_t i = 0; i < kBlockClasses; ++i) {
      while (FreeBlock* const block = lists.first[i]) {
        lists.first[i] = block->next;
        block_to_system(block);
      }
      lists.count[i] = 0;
    }
  }
  void touch() noexcept { block_lists.kept_until_end = true; }
};
thread_local AtThreadEnd at_thread_end;

}  // namespace

void* block_from_system(size_t bytes) {
  void* const block = std::aligned_alloc(kBlockStep, bytes);
  if (!block) throw std::bad_alloc();
  return block;
}

void block_to_system(void* block) noexcept { std::free(block); }

void keep_blocks_until_thread_ends() noexcept { at_thread_end.touch(); }

}  // namespace brigade::detail
