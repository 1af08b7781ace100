CREATE TABLE "catalog"."search" (
	"rid" bigint PRIMARY KEY NOT NULL,
	"names" text NOT NULL,
	"document" "tsvector" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog"."search_position" (
	"name" text PRIMARY KEY NOT NULL,
	"pub_seq" bigint NOT NULL,
	"filling_after" bigint
);
--> statement-breakpoint
CREATE INDEX "search_document" ON "catalog"."search" USING gin ("document");--> statement-breakpoint
CREATE INDEX "search_names_trgm" ON "catalog"."search" USING gin (names gin_trgm_ops);