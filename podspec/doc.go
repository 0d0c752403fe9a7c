// Package podspec is what the user wants: one pod with all defaults, and the ConfigMaps and
// Secrets it refers to. It also answers what follows from a v1.Pod alone: its containers and
// volumes, the ports it publishes, its limits, what it refers to.
//
// In: a pod and its objects, from podspec/load or from a file. Out: the digest of what is
// wanted, copies without values of Secrets, and facts about the pod.
//
// The package and the rooms below it are leaves. They know YAML and the Kubernetes API types,
// and may not import anything of a container runtime, a state directory or a terminal. Only
// podspec/input reads files and the network.
//
//	input      texts of manifests: files, standard input, URLs
//	document   one text cut into YAML documents, each with the place of every field
//	fieldpath  paths of fields, and the API types they lead through
//	fields     the class of every field of v1.Pod: honoured, without effect, or refused
//	load       documents decoded, defaulted, validated, and made into pods
//	expand     the environment of a container, and its bounds
//	digest     keyed digests that stand for values of Secrets
//	spechash   hashes of what only a new container, or a new sandbox, brings into force
//	redaction  values of Secrets taken out of texts
package podspec
