import { useLocation } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'

type TabsProps = { label: string; children: React.ReactNode }

/** A row of links to the parts of a page. A narrow screen scrolls it, and sees the open part in its middle. */
export const Tabs = ({ label, children }: TabsProps) => {
  const row = useRef<HTMLElement>(null)
  const { href } = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: another address opens another part.
  useEffect(() => {
    const open = row.current?.querySelector('[aria-current]')?.getBoundingClientRect()
    if (!row.current || !open) return
    const { left, width } = row.current.getBoundingClientRect()
    // The row alone moves: scrollIntoView would also scroll the page up to it.
    row.current.scrollLeft += open.left - left - (width - open.width) / 2
  }, [href])
  return (
    <nav className="tabs" aria-label={label} ref={row}>
      {children}
    </nav>
  )
}
