export type ButtonProps = Omit<React.ComponentProps<'button'>, 'className'> & { word?: string; look?: string }

/** A button of the pages with a word, or other content; `look` has its classes, such as `main`, `danger` or `quiet`. */
export const Button = ({ word, look = '', children = word, ...button }: ButtonProps) => (
  <button type="button" {...button} className={`button ${look}`}>
    {children}
  </button>
)
