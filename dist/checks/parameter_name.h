// How a check calls a parameter of an optimizer that its wrapper does not manage.
#pragma once

#include <brigade/autograd/listener.h>

#include <string>

namespace brigade::dist {

// Its name in the module that it is registered in; else "parameter 1 of SGD#2 (made at train.cpp:5)": its position in the
// second SGD that the thread has made, and the line that made it trainable.
std::string name_of_unmanaged(const autograd::Update& update, size_t position);

}  // namespace brigade::dist
