// Elementwise selection on the CPU: copies elements as words of their size, for any dtype.
#include <brigade/core/view.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cpu/detail/conversion.h>

namespace brigade::kernels {
namespace {

// A number is one word with a step of 0.
template <class Word>
void choose(const bool* condition, int64_t condition_step, const Word* a, int64_t a_step, const Word* b, int64_t b_step,
            Word* out, int64_t length) {
  const auto run = [&](auto left, auto right) {
    for (int64_t i = 0; i < length; ++i)
      out[i] = condition[i] ? left(i) : right(i);
  };
  const auto moving = [](const Word* from) { return [from](int64_t i) { return from[i]; }; };
  const auto fixed = [](const Word* from) { return [value = *from](int64_t) { return value; }; };
  // The loops that the compiler vectorizes, then the general one.
  if (condition_step == 1 && a_step == 1 && b_step == 1) {
    run(moving(a), moving(b));
  } else if (condition_step == 1 && a_step == 1 && b_step == 0) {
    run(moving(a), fixed(b));
  } else if (condition_step == 1 && a_step == 0 && b_step == 1) {
    run(fixed(a), moving(b));
  } else {
    for (int64_t i = 0; i < length; ++i)
      out[i] = condition[i * condition_step] ? a[i * a_step] : b[i * b_step];
  }
}

Tensor where_cpu(const Tensor& condition, const Choice& a, const Choice& b) {
  const ChoicePlan plan = prepare_where(condition, a, b);
  if (plan.out.numel() == 0) return plan.out;
  const Tensor none = view::as_strided(plan.out, {}, {}, 0);
  visit_words(plan.out.dtype(), [&]<class Word>() {
    const Word left = word_of<Word>(a.number, plan.out.dtype());
    const Word right = word_of<Word>(b.number, plan.out.dtype());
    const Word* const p = plan.a.defined() ? static_cast<const Word*>(plan.a.raw_data()) : &left;
    const Word* const q = plan.b.defined() ? static_cast<const Word*>(plan.b.raw_data()) : &right;
    const bool* const chosen = static_cast<const bool*>(plan.condition.raw_data());
    Word* const out = static_cast<Word*>(plan.out.raw_data());
    const cpu::StridedLoop<4> loop(plan.out.sizes(), {&plan.condition, plan.a.defined() ? &plan.a : &none,
                                                      plan.b.defined() ? &plan.b : &none, &plan.out});
    loop.for_each_row([&](const auto& at, const auto& steps, int64_t length) {
      choose(chosen + at[0], steps[0], p + at[1], steps[1], q + at[2], steps[2], out + at[3], length);
    });
  });
  return plan.out;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Choice&, const Choice&)> where("where", &where_cpu);

}  // namespace brigade::kernels
