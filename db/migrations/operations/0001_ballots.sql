CREATE TABLE "operations"."ballots" (
	"challenge" text PRIMARY KEY NOT NULL,
	"ballot" jsonb NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE INDEX "ballots_expired" ON "operations"."ballots" USING btree ("expires_at");