// How checks name a parameter of an optimizer that the wrapper does not manage.
#pragma once

#include <brigade/autograd/listener.h>

#include <string>

namespace brigade::dist {

// The name under which a module registered it; otherwise "parameter 1 of SGD#2 (made at train.cpp:5)": its position
// in the second SGD created on this thread, and the line that made it trainable.
std::string name_of_unmanaged(const autograd::Update& update, size_t position);

}  // namespace brigade::dist
