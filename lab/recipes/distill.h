// The recipe `distill`: a small network learns the digits from a large, frozen one that knows them
// (Hinton, Vinyals, Dean: "Distilling the knowledge in a neural network", 2015).
#pragma once

#include <brigade/lab/recipes/digits.h>
#include <brigade/lab/recipes/recipe.h>

#include <functional>
#include <utility>

namespace brigade::lab {

// An eighth of the teacher's parameters.
struct StudentNetImpl : nn::Module {
  nn::Conv2d conv{nullptr};
  nn::Linear fc1{nullptr}, fc2{nullptr};

  StudentNetImpl();
  // [N, 1, 8, 8] -> logits [N, 10]
  Tensor forward(const Tensor& images);
};
BRIGADE_MODULE(StudentNet);

// Both as people keep them, in a ModuleDict.
struct TeacherStudentImpl : nn::ModuleDictImpl<nn::AnyModule> {
  DigitsNet teacher;
  StudentNet student;

  TeacherStudentImpl();
  // The logits of the teacher, and those of the student.
  std::pair<Tensor, Tensor> forward(const Tensor& images);
};
BRIGADE_MODULE(TeacherStudent);

struct DistillSettings {
  int teacher_epochs = 20;  // in which the teacher learns, before it is frozen
  bool shuffle = true;      // false: the examples come in the order of the file
  // Puts other values in place of those that the layers start with.
  std::function<void(TeacherStudent& pair)> start = {};
};

// The form is that of the options.
TrainResult train_distill(const dist::ProcessGroupPtr& group, const TrainOptions& options,
                          const DistillSettings& settings = {});

}  // namespace brigade::lab
