// Package view turns values into text for people: plans, the progress of their steps, pods and
// containers. Values of runtime come in, text goes out. It calls nothing and decides nothing;
// documents for programs are printed from the values themselves.
package view
