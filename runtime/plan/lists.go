package plan

// fillLists writes the needs of steps by list, for those who read them so.
func (p *Plan) fillLists() {
	for i := range p.Steps {
		s := &p.Steps[i]
		s.After, s.StopAfter, s.CreateAfter = s.Needs.Of(Begin).steps(), s.Needs.Of(Stop).steps(), s.Needs.Of(Create).steps()
		s.AfterExit = s.Needs.where(func(e Edge) bool { return e.Until == Exited }).steps()
	}
}
