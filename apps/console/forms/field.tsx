type FieldProps = {
  id: string
  label: string
  note?: string | undefined
  /** Omitted for a control that cannot be wrong. */
  error?: React.ReactNode
  children: React.ReactNode
}

/** A control under its label. The control refers to note and error in aria-describedby: `<id>-note`, `<id>-error`. */
export const Field = ({ id, label, note, error, children }: FieldProps) => (
  <div className="min-w-0">
    <label className="label" htmlFor={id}>
      {label}
    </label>
    {children}
    {note ? (
      <p id={`${id}-note`} className="mt-1 text-meta text-muted">
        {note}
      </p>
    ) : null}
    {error === undefined ? null : (
      <p id={`${id}-error`} className="field-error">
        {error}
      </p>
    )}
  </div>
)
