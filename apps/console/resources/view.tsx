import { useNavigate } from '@tanstack/react-router'
import { Choices } from '../forms/choices.tsx'
import { isNarrow } from '../forms/view.tsx'
import { tCatalog } from '../words/catalog.ts'

export type PictureOrTable = 'picture' | 'table' | undefined

/** Whether to draw a picture: as chosen, otherwise if there is room. */
export const usePicture = (view: PictureOrTable): boolean => (view ?? (isNarrow() ? 'table' : 'picture')) === 'picture'

export const PictureChoice = ({ drawn }: { drawn: boolean }) => {
  const navigate = useNavigate()
  return (
    <Choices
      label={tCatalog.picture.view}
      choices={tCatalog.picture.views}
      chosen={drawn ? 'picture' : 'table'}
      choose={(view) => void navigate({ to: '.', search: (before: object) => ({ ...before, view }) })}
    />
  )
}
